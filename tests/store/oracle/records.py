"""The records of one user in one workspace."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.store import rules, transfer
from holdfast.store.records import AuditEntry, Content, RefInfo, SessionRecord, Summary, Turn
from holdfast.store.refs import RefName

_places = itertools.count(1)


@dataclass(eq=False)
class Ref:
    """A ref, and who uses it."""

    content: Content
    """Without its data, which lies with the workspace."""
    size: int
    created_at: float
    written_at: float
    expires_at: float | None
    accessed_at: float | None = None
    accesses: int = 0
    removed: bool = False
    uses: set[str] = field(default_factory=set)
    place: int = 0
    """Its number in the order in which refs were stored, over all shelves."""

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return self.content.sha256

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same ref: kind and hash."""
        return (self.content.kind, self.content.sha256)

    def info(self, now: float) -> RefInfo:
        """The ref in the words of the protocol."""
        return RefInfo(
            ref_id=self.content.ref_id,
            kind=self.content.kind,
            sha256=self.sha256,
            size=self.size,
            tokens=self.content.tokens,
            summary=self.content.summary,
            compressed=self.content.compressed,
            meta=dict(self.content.meta),
            flags=self.content.flags,
            created_at=self.created_at,
            expires_at=self.expires_at,
            accessed_at=self.accessed_at,
            accesses=self.accesses,
            state=rules.state_of(
                removed=self.removed, damage=None, expires_at=self.expires_at, now=now
            ),
        )

    def line(self, data: bytes | None) -> transfer.RefLine:
        """The ref as it is exported."""
        return transfer.RefLine(
            ref_id=self.content.ref_id,
            kind=self.content.kind,
            sha256=self.sha256,
            size=self.size,
            tokens=self.content.tokens,
            summary=self.content.summary,
            compressed=self.content.compressed,
            meta=self.content.meta,
            flags=self.content.flags,
            created_at=self.created_at,
            written_at=self.written_at,
            expires_at=self.expires_at,
            accessed_at=self.accessed_at,
            accesses=self.accesses,
            uses=tuple(sorted(self.uses)),
            data=data,
        )

    @classmethod
    def of(cls, line: transfer.RefLine) -> Ref:
        """The ref that was exported."""
        content = Content(
            ref_id=line.ref_id,
            kind=line.kind,
            sha256=line.sha256,
            data=b"",
            summary=line.summary,
            compressed=line.compressed,
            tokens=line.tokens,
            meta=line.meta,
            flags=line.flags,
        )
        return cls(
            content,
            line.size,
            line.created_at,
            line.written_at,
            line.expires_at,
            line.accessed_at,
            line.accesses,
            removed=line.data is None,
            uses=set(line.uses),
        )


@dataclass
class Shelf:
    """The records of one user in one workspace."""

    refs: dict[tuple[str, str], Ref] = field(default_factory=dict)
    """By kind and hash, in the order they were stored."""
    sessions: dict[str, SessionRecord] = field(default_factory=dict)
    turns: dict[str, dict[int, Turn]] = field(default_factory=dict)
    messages: dict[str, set[str]] = field(default_factory=dict)
    """The sessions that name a hash."""
    links: dict[str, str] = field(default_factory=dict)
    """The session whose history a provider holds under a name."""
    summaries: dict[str, Summary] = field(default_factory=dict)
    calibration: bytes | None = None
    audit: list[AuditEntry] = field(default_factory=list)

    def add(self, ref: Ref) -> None:
        """Put a ref last, in the place of one with its key."""
        self.refs.pop(ref.key, None)
        ref.place = next(_places)
        self.refs[ref.key] = ref

    def named(self, name: RefName) -> list[Ref]:
        """The refs that a name may mean."""
        return [
            ref
            for ref in self.refs.values()
            if name.kind in ("", ref.content.kind) and ref.sha256.startswith(name.digits)
        ]

    def of_content(self, sha256: str) -> list[Ref]:
        """The refs that lead to a content, or once did."""
        return self.named(RefName("", sha256))

    def find(self, name: RefName) -> Ref | None:
        """The ref that a name means."""
        return rules.choose(name, self.named(name), lambda ref: (ref.content.ref_id, ref.sha256))

    def drop_summaries_of(self, sha256: str) -> None:
        """Remove the summaries of a content that its user no longer has."""
        if not any(not ref.removed for ref in self.of_content(sha256)):
            for key in [key for key, summary in self.summaries.items() if summary.source == sha256]:
                del self.summaries[key]

    def live(self) -> Iterator[Ref]:
        """The refs whose content is there."""
        return (ref for ref in self.refs.values() if not ref.removed)

    def may_go(self, ref: Ref, cutoff: float) -> bool:
        """Whether a ref was not touched since, and is stale or of sessions closed by then."""
        if ref.written_at > cutoff or (ref.accessed_at is not None and ref.accessed_at > cutoff):
            return False
        for session in ref.uses - {""}:
            record = self.sessions.get(session)
            if record is None or record.closed_at is None or record.closed_at > cutoff:
                return False
        is_stale = ref.expires_at is not None and ref.expires_at <= cutoff
        return is_stale or (bool(ref.uses) and "" not in ref.uses)
