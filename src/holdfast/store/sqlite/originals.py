"""originals: contents and their refs, in SQL.

originals: after contents. Each function is a job for a connection, inside of a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from holdfast.store import rules
from holdfast.store.operations import facts, summaries
from holdfast.store.pack import Packed, unpack
from holdfast.store.records import AuditEntry, Content, RefInfo
from holdfast.store.refs import RefName, parse
from holdfast.store.scope import Scope
from holdfast.store.sqlite import answers, contents, jobs
from holdfast.store.sqlite.running import run
from holdfast.store.transfer import RefLine

_COLUMNS = (
    "r.id, r.ref_id, r.kind, r.sha256, r.content, r.size, r.tokens, r.created_at, r.written_at, "
    "r.expires_at, r.accessed_at, r.accesses, r.detail, c.damage"
)
_FROM = "FROM refs AS r LEFT JOIN contents AS c ON c.id = r.content"


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """What is only ever read together with its ref."""

    summary: str
    compressed: str
    meta: dict[str, str]
    flags: tuple[str, ...]


class RefRow(NamedTuple):
    """A ref as it is stored."""

    id: int
    ref_id: str
    kind: str
    sha256: str
    content: int | None
    size: int
    tokens: int
    created_at: float
    written_at: float
    expires_at: float | None
    accessed_at: float | None
    accesses: int
    detail_json: str
    damage: str | None

    @property
    def detail(self) -> Detail:
        """The rest of it."""
        return rules.from_json(self.detail_json, Detail)

    def info(self, now: float) -> RefInfo:
        """The ref in the words of the protocol."""
        detail = self.detail
        return RefInfo(
            ref_id=self.ref_id,
            kind=self.kind,
            sha256=self.sha256,
            size=self.size,
            tokens=self.tokens,
            summary=detail.summary,
            compressed=detail.compressed,
            meta=detail.meta,
            flags=detail.flags,
            created_at=self.created_at,
            expires_at=self.expires_at,
            accessed_at=self.accessed_at,
            accesses=self.accesses,
            state=rules.state_of(
                removed=self.content is None,
                damage=self.damage,
                expires_at=self.expires_at,
                now=now,
            ),
        )


class OpenedRef(NamedTuple):
    """A ref with its content."""

    row: RefRow
    data: bytes | None
    """The exact bytes; None if they are damaged."""


def put(
    db: apsw.Connection, scope: Scope, packed_contents: Sequence[tuple[Content, Packed]], now: float
) -> None:
    """Store originals."""
    for content, packed in packed_contents:
        _put(db, scope, content, packed, now)


def _put(db: apsw.Connection, scope: Scope, content: Content, packed: Packed, now: float) -> None:
    earlier = claim(db, scope, content.ref_id, content.sha256)
    stored = contents.keep(db, scope, content.sha256, len(content.data), packed)
    if earlier is not None and earlier.content is not None:
        action, row = "seen again", earlier.id
        content = _refresh(db, earlier, content, now)
    else:
        if earlier is not None:
            db.execute("DELETE FROM refs WHERE id = ?", (earlier.id,))
        action, row = "stored", insert(db, scope, _new(content, now), stored)
    use(db, scope, row, (scope.session,))
    entry = AuditEntry(
        at=now,
        session=scope.session,
        ref_id=content.ref_id,
        sha256=content.sha256,
        action=action,
        size=len(content.data),
        from_tokens=content.tokens,
        to_tokens=content.compressed_tokens,
        flags=content.flags,
    )
    audit(db, scope, entry)


def claim(db: apsw.Connection, scope: Scope, ref_id: str, sha256: str) -> RefRow | None:
    """The row of a ref that is to be stored; no other content may have its name."""
    name = parse(ref_id)
    assert name is not None  # noqa: S101 - checked before anything was queued
    rows = _named(db, scope, name)
    if any(row.ref_id == ref_id and row.sha256 != sha256 for row in rows):
        raise rules.collision()
    return next((row for row in rows if row.sha256 == sha256), None)


def _new(content: Content, now: float) -> RefLine:
    return RefLine(
        ref_id=content.ref_id,
        kind=content.kind,
        sha256=content.sha256,
        size=len(content.data),
        tokens=content.tokens,
        summary=content.summary,
        compressed=content.compressed,
        meta=content.meta,
        flags=content.flags,
        created_at=now,
        written_at=now,
        expires_at=rules.expiry(now, content.ttl_seconds),
        accessed_at=None,
        accesses=0,
        uses=(),
        data=None,
    )


def insert(db: apsw.Connection, scope: Scope, ref: RefLine, stored: int | None) -> int:
    """Write a ref whose content is stored, or removed; return its row."""
    detail = Detail(summary=ref.summary, compressed=ref.compressed, meta=ref.meta, flags=ref.flags)
    db.execute(
        "INSERT INTO refs (workspace, owner, kind, sha256, ref_id, content, size, tokens,"
        " created_at, written_at, expires_at, accessed_at, accesses, flagged, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(scope.workspace, scope.user, ref.kind, ref.sha256, ref.ref_id, stored),
            *(ref.size, ref.tokens, ref.created_at, ref.written_at, ref.expires_at),
            *(ref.accessed_at, ref.accesses, bool(ref.flags), rules.to_json(detail)),
        ),
    )
    return db.last_insert_rowid()


def _refresh(db: apsw.Connection, row: RefRow, content: Content, now: float) -> Content:
    """Complete a known ref, and return what is known now."""
    earlier = row.detail
    detail = Detail(
        summary=earlier.summary or content.summary,
        compressed=earlier.compressed or content.compressed,
        meta=earlier.meta or content.meta,
        flags=earlier.flags or content.flags,
    )
    tokens = row.tokens or content.tokens
    expires_at = rules.longer(row.expires_at, rules.expiry(now, content.ttl_seconds))
    db.execute(
        "UPDATE refs SET written_at = ?, expires_at = ?, tokens = ?, flagged = ?, detail = ?"
        " WHERE id = ?",
        (now, expires_at, tokens, bool(detail.flags), rules.to_json(detail), row.id),
    )
    return msgspec.structs.replace(
        content, ref_id=row.ref_id, tokens=tokens, **msgspec.structs.asdict(detail)
    )


def use(db: apsw.Connection, scope: Scope, ref: int, sessions: Iterable[str]) -> None:
    """Note that sessions use a ref."""
    db.executemany(
        "INSERT OR IGNORE INTO uses (workspace, owner, session, ref) VALUES (?, ?, ?, ?)",
        [(scope.workspace, scope.user, session, ref) for session in sessions],
    )


def audit(db: apsw.Connection, scope: Scope, entry: AuditEntry) -> None:
    """Add an entry to the audit trail."""
    db.execute(
        "INSERT INTO audit (workspace, owner, at, entry) VALUES (?, ?, ?, ?)",
        (scope.workspace, scope.user, entry.at, rules.to_json(entry)),
    )


def audit_ref(db: apsw.Connection, scope: Scope, action: str, row: RefRow, now: float) -> None:
    """Note what became of a ref."""
    entry = AuditEntry(
        at=now,
        session=scope.session,
        ref_id=row.ref_id,
        sha256=row.sha256,
        action=action,
        size=row.size,
        from_tokens=row.tokens,
        to_tokens=0,
        flags=row.detail.flags,
    )
    audit(db, scope, entry)


def _named(db: apsw.Connection, scope: Scope, name: RefName) -> list[RefRow]:
    rows = db.execute(
        f"SELECT {_COLUMNS} {_FROM}"
        " WHERE r.workspace = ? AND r.owner = ? AND r.sha256 BETWEEN ? AND ? AND ? IN ('', r.kind)",
        (scope.workspace, scope.user, *rules.hash_range(name), name.kind),
    )
    return [RefRow._make(row) for row in rows]


def find(db: apsw.Connection, scope: Scope, ref: str) -> RefRow | None:
    """The row that a name means."""
    name = parse(ref)
    if name is None:
        return None
    return rules.choose(name, _named(db, scope, name), lambda row: (row.ref_id, row.sha256))


def open_ref(db: apsw.Connection, scope: Scope, ref: str) -> OpenedRef | None:
    """A ref and its content, unless it was removed."""
    row = find(db, scope, ref)
    if row is None or row.content is None:
        return None
    return OpenedRef(row, original(db, row))


def original(db: apsw.Connection, row: RefRow) -> bytes | None:
    """The bytes behind a ref; None if they were removed or are damaged."""
    if row.content is None or row.damage is not None:
        return None
    size, codec, data = db.execute(
        f"SELECT size, codec, {contents.DATA} FROM contents WHERE id = ?",  # noqa: S608 - constants
        (row.content,),
    ).get
    return unpack(codec, data, size=size, sha256=row.sha256)


def note_access(db: apsw.Connection, scope: Scope, ref: int, now: float) -> None:
    """Count an access, and a use if the scope names a session; the ref may be gone by now."""
    db.execute("UPDATE refs SET accesses = accesses + 1, accessed_at = ? WHERE id = ?", (now, ref))
    if scope.session and db.changes():
        use(db, scope, ref, (scope.session,))


def retell(db: apsw.Connection, scope: Scope, ref: str, gist: str) -> None:
    """Say of a ref what it is, in other words than before."""
    row = find(db, scope, ref)
    if row is not None:
        detail = rules.to_json(msgspec.structs.replace(row.detail, summary=gist))
        db.execute("UPDATE refs SET detail = ? WHERE id = ?", (detail, row.id))


def mark_damaged(db: apsw.Connection, scope: Scope, sha256: str, now: float) -> bool:
    """Set a content apart, unless someone healed it meanwhile; whether it is damaged."""
    stored = db.execute(
        f"SELECT id, size, codec, damage, {contents.DATA} FROM contents"  # noqa: S608 - constants
        " WHERE workspace = ? AND sha256 = ?",
        (scope.workspace, sha256),
    ).fetchone()
    if stored is None:
        return False
    id_, size, codec, damage, data = stored
    if damage is not None:
        return True
    if unpack(codec, data, size=size, sha256=sha256) is not None:
        return False
    db.execute("UPDATE contents SET damage = ? WHERE id = ?", (rules.DAMAGE, id_))
    for row in of_content(db, scope, id_):
        audit_ref(db, scope, "damaged", row, now)
    return True


def of_content(db: apsw.Connection, scope: Scope, content: int) -> list[RefRow]:
    """The refs of this scope that lead to a content."""
    rows = db.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE r.content = ? AND r.workspace = ? AND r.owner = ?"
        " ORDER BY r.id",
        (content, scope.workspace, scope.user),
    )
    return [RefRow._make(row) for row in rows]


def with_ids(db: apsw.Connection, scope: Scope, ids: Sequence[int]) -> list[RefRow]:
    """Rows of this scope by their numbers."""
    rows = db.execute(
        f"SELECT {_COLUMNS} {_FROM}"  # noqa: S608 - constants
        " WHERE r.id IN (SELECT value FROM json_each(?)) AND r.workspace = ? AND r.owner = ?"
        " ORDER BY r.id",
        (json.dumps(ids), scope.workspace, scope.user),
    )
    return [RefRow._make(row) for row in rows]


def newest_of(
    db: apsw.Connection,
    owners: tuple[str, str],
    *,
    kind: str,
    limit: int,
    before: tuple[Scope, str] | None,
) -> list[tuple[str, RefRow]]:
    """Return the refs stored last in some workspaces, each with its workspace.

    `owners` are the user, and the names of the workspaces as JSON.
    """
    below = 2**62 if before is None else _place(db, *before)
    of_kind = "AND r.kind = ?3" if kind else ""
    # With `+` no index is used for the workspaces: refs are read from the newest on, and of most
    # users only as many as are wanted. With an index, all of them would be sorted.
    rows = db.execute(
        f"SELECT r.workspace, {_COLUMNS} {_FROM} WHERE r.id < ?4 AND r.owner = ?1"  # noqa: S608
        f" AND +r.workspace IN (SELECT value FROM json_each(?2)) AND r.content IS NOT NULL"
        f" {of_kind} ORDER BY r.id DESC LIMIT ?5",
        (*owners, kind, below, max(limit, 0)),
    )
    return [(workspace, RefRow(*row)) for workspace, *row in rows]


def _place(db: apsw.Connection, scope: Scope, ref: str) -> int:
    last = find(db, scope, ref)
    if last is None:
        raise rules.no_place_to_go_on(ref)
    return last.id


def newest(
    db: apsw.Connection, scope: Scope, *, kind: str, limit: int, before: str
) -> list[RefRow]:
    """The refs stored last."""
    below = _place(db, scope, before) if before else 2**62
    bindings: dict[str, Any] = {
        "workspace": scope.workspace,
        "owner": scope.user,
        "session": scope.session,
        "kind": kind,
        "below": below,
        "limit": max(limit, 0),
    }
    where = "WHERE r.workspace = :workspace AND r.owner = :owner AND r.content IS NOT NULL"
    of_kind = " AND r.kind = :kind" if kind else ""
    if scope.session:
        sql = (
            f"SELECT {_COLUMNS} FROM uses AS u CROSS JOIN refs AS r ON r.id = u.ref"  # noqa: S608
            f" LEFT JOIN contents AS c ON c.id = r.content {where}{of_kind}"
            " AND u.workspace = :workspace AND u.owner = :owner AND u.session = :session"
            " AND u.ref < :below ORDER BY u.ref DESC LIMIT :limit"
        )
    else:
        sql = (
            f"SELECT {_COLUMNS} {_FROM} {where}{of_kind} AND r.id < :below"
            " ORDER BY r.id DESC LIMIT :limit"
        )
    return [RefRow._make(row) for row in db.execute(sql, bindings)]


def forget(db: apsw.Connection, scope: Scope, refs: Sequence[str], now: float) -> int:
    """Remove refs without a trace."""
    rows = [row for row in (find(db, scope, ref) for ref in refs) if row is not None]
    gone = list({row.id: row for row in rows}.values())
    for row in gone:
        drop(db, scope, row, now)
    return len(gone)


def drop(db: apsw.Connection, scope: Scope, row: RefRow, now: float) -> None:
    """Remove a ref, and its content if nobody else needs it."""
    db.execute("DELETE FROM refs WHERE id = ?", (row.id,))
    if row.content is not None:
        audit_ref(db, scope, "removed", row, now)
        contents.sweep(db, row.content)
    run(db, summaries.drop_of_sources(scope, [row.sha256]))
    jobs.drop_of_ref(db, scope, row.ref_id)
    run(db, facts.drop_of_refs(scope, [row.ref_id]))
    answers.remove_of_ref(db, scope, row.ref_id)
