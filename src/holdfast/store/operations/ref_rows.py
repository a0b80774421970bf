"""Refs and entries of the audit as rows of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.store import rules
from holdfast.store.records import AuditEntry, RefInfo
from holdfast.store.scope import Scope
from holdfast.store.statements import Values
from holdfast.store.transfer import RefLine


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a ref that no query selects by; SQLite stores them as one JSON column."""

    summary: str
    compressed: str
    meta: dict[str, str]
    flags: tuple[str, ...]


class StoredRef(NamedTuple):
    """A ref as it is stored."""

    ref_id: str
    kind: str
    sha256: str
    size: int
    tokens: int
    created_at: float
    written_at: float
    expires_at: float | None
    accessed_at: float | None
    accesses: int
    detail_json: str
    removed: bool
    damage: str | None
    number: int
    """Its place in the order of storing."""

    @property
    def key(self) -> tuple[str, str]:
        """The hash and the kind, by which a ref is known."""
        return self.sha256, self.kind

    @property
    def detail(self) -> Detail:
        """The part of it that is stored as JSON."""
        return rules.from_json(self.detail_json, Detail)

    def info(self, now: float) -> RefInfo:
        """Return the ref in the words of the protocol."""
        return RefInfo(
            ref_id=self.ref_id,
            kind=self.kind,
            sha256=self.sha256,
            size=self.size,
            tokens=self.tokens,
            **msgspec.structs.asdict(self.detail),
            created_at=self.created_at,
            expires_at=self.expires_at,
            accessed_at=self.accessed_at,
            accesses=self.accesses,
            state=rules.state_of(
                removed=bool(self.removed),
                damage=self.damage,
                expires_at=self.expires_at,
                now=now,
            ),
        )

    def entry(self, scope: Scope, action: str, now: float) -> AuditEntry:
        """Return an entry of the audit trail about this ref."""
        return AuditEntry(
            at=now,
            session=scope.session,
            ref_id=self.ref_id,
            sha256=self.sha256,
            action=action,
            size=self.size,
            from_tokens=self.tokens,
            to_tokens=0,
            flags=self.detail.flags,
        )

    def line(self, uses: Sequence[str], data: bytes | None) -> RefLine:
        """Return the ref as it is exported."""
        return RefLine(
            ref_id=self.ref_id,
            kind=self.kind,
            sha256=self.sha256,
            size=self.size,
            tokens=self.tokens,
            **msgspec.structs.asdict(self.detail),
            created_at=self.created_at,
            written_at=self.written_at,
            expires_at=self.expires_at,
            accessed_at=self.accessed_at,
            accesses=self.accesses,
            uses=tuple(uses),
            data=data,
        )


WIDTH = len(StoredRef._fields)
"""Columns of a ref, before those of its content."""

_REF_COLUMNS = (
    "ref_id", "kind", "sha256", "size", "tokens", "summary", "compressed", "created_at",
    "written_at", "expires_at", "accessed_at", "accesses",
)  # fmt: skip


def ref_values(line: RefLine, *, removed: bool = False) -> Values:
    """Return a ref as the values of its row."""
    values = {name: getattr(line, name) for name in _REF_COLUMNS}
    detail = Detail(
        summary=line.summary, compressed=line.compressed, meta=line.meta, flags=line.flags
    )
    values["meta"] = rules.to_json(line.meta) if line.meta else "{}"
    values["flags"] = rules.to_json(line.flags) if line.flags else "[]"
    values["removed"] = removed
    values["detail"] = rules.to_json(detail)
    return values


_ENTRY_COLUMNS = ("at", "ref_id", "sha256", "action", "size", "from_tokens", "to_tokens")


def entry_values(entry: AuditEntry) -> Values:
    """Return an entry of the audit as the values of its row."""
    values = {name: getattr(entry, name) for name in _ENTRY_COLUMNS}
    values["used_in"] = entry.session
    values["flags"] = rules.to_json(entry.flags) if entry.flags else "[]"
    values["entry"] = rules.to_json(entry)
    return values
