"""upkeep: how full the store is, whether it is sound, and what may go, in SQL.

upkeep: after sessions. Each function is a job for a connection, inside of a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from holdfast.store import rules
from holdfast.store.operations import summaries
from holdfast.store.pack import unpack
from holdfast.store.records import Cleaned, Damage, StoreStats
from holdfast.store.scope import Scope
from holdfast.store.sqlite import contents, originals
from holdfast.store.sqlite.running import run

_MINE = "workspace = :workspace AND owner = :owner"

# What nobody needs: untouched since the cutoff, used by no session that is open or was closed
# since, and either stale or left by the sessions that used it.
_MAY_GO = f"""
    {_MINE} AND content IS NOT NULL
    AND written_at <= :cutoff AND coalesce(accessed_at, written_at) <= :cutoff
    AND NOT EXISTS (
        SELECT 1 FROM uses AS u LEFT JOIN sessions AS s
            ON s.workspace = u.workspace AND s.owner = u.owner AND s.session = u.session
        WHERE u.ref = refs.id AND u.session <> ''
            AND (s.closed_at IS NULL OR s.closed_at > :cutoff)
    )
    AND (
        expires_at <= :cutoff
        OR (
            EXISTS (SELECT 1 FROM uses WHERE ref = refs.id)
            AND NOT EXISTS (SELECT 1 FROM uses WHERE ref = refs.id AND session = '')
        )
    )
"""  # noqa: S608 - constants

_EVERYTHING = f"""
    SELECT content FROM refs WHERE {_MINE} AND content IS NOT NULL
    UNION SELECT content FROM messages WHERE {_MINE}
"""  # noqa: S608 - constants


_THEIRS = "workspace IN (SELECT value FROM json_each(:workspaces)) AND owner = :owner"


def _mine(scope: Scope, **more: Any) -> dict[str, Any]:
    return {"workspace": scope.workspace, "owner": scope.user, **more}


def stats(db: apsw.Connection, user: str, workspaces: Sequence[str], now: float) -> StoreStats:
    """Return how much some workspaces of a user hold together."""
    asked = {"workspaces": json.dumps(workspaces), "owner": user}
    kinds = db.execute(
        f"SELECT kind, count(*) FROM refs WHERE {_THEIRS} AND content IS NOT NULL"  # noqa: S608
        " GROUP BY kind ORDER BY kind",
        asked,
    )
    by_kind = dict(kinds)
    damaged, stale, flagged = db.execute(
        "SELECT coalesce(sum(c.damage IS NOT NULL), 0),"
        " coalesce(sum(c.damage IS NULL AND r.expires_at <= :now), 0),"
        " coalesce(sum(r.flagged), 0)"
        " FROM refs AS r JOIN contents AS c ON c.id = r.content"
        " WHERE r.workspace IN (SELECT value FROM json_each(:workspaces)) AND r.owner = :owner",
        asked | {"now": now},
    ).get
    held, size, stored = db.execute(
        "SELECT count(*), coalesce(sum(size), 0), coalesce(sum(length(data)), 0) FROM contents"  # noqa: S608
        f" WHERE id IN (SELECT content FROM refs WHERE {_THEIRS} AND content IS NOT NULL)",
        asked,
    ).get
    turns = db.execute(f"SELECT count(*) FROM turns WHERE {_THEIRS}", asked).get  # noqa: S608
    sessions = db.execute(
        "SELECT count(DISTINCT CASE WHEN client_session <> '' THEN"  # noqa: S608
        " json_array(workspace, client_session) END) + coalesce(sum(client_session = ''), 0)"
        f" FROM sessions WHERE {_THEIRS} AND purpose = ''",
        asked,
    ).get
    return StoreStats(
        refs=sum(by_kind.values()),
        contents=held,
        size=size,
        stored=stored,
        sessions=sessions,
        turns=turns,
        stale=stale,
        damaged=damaged,
        flagged=flagged,
        by_kind=by_kind,
    )


def count_contents(db: apsw.Connection, scope: Scope) -> int:
    """How many contents `unsound` will read."""
    return int(db.execute(f"SELECT count(*) FROM ({_EVERYTHING})", _mine(scope)).get)  # noqa: S608


class Checked(NamedTuple):
    """A part of the contents, read."""

    read: int
    last: str
    """Where to go on."""
    unsound: list[str]


def check(db: apsw.Connection, scope: Scope, *, after: str, limit: int) -> Checked:
    """Read contents behind a hash, in the order of their hashes."""
    rows = db.execute(
        f"SELECT sha256, size, codec, damage, {contents.DATA} FROM contents"  # noqa: S608
        f" WHERE workspace = :workspace AND sha256 > :after AND id IN ({_EVERYTHING})"
        " ORDER BY sha256 LIMIT :limit",
        _mine(scope, after=after, limit=limit),
    )
    read, last, unsound = 0, after, []
    for sha256, size, codec, damage, data in rows:
        read, last = read + 1, sha256
        if damage is not None or unpack(codec, data, size=size, sha256=sha256) is None:
            unsound.append(sha256)
    return Checked(read, last, unsound)


def set_apart(db: apsw.Connection, scope: Scope, hashes: Sequence[str], now: float) -> list[Damage]:
    """Mark what is damaged, of what was found unsound."""
    damages = []
    for sha256 in hashes:
        if originals.mark_damaged(db, scope, sha256, now):
            id_ = db.execute(
                "SELECT id FROM contents WHERE workspace = ? AND sha256 = ?",
                (scope.workspace, sha256),
            ).get
            refs = tuple(sorted(row.ref_id for row in originals.of_content(db, scope, id_)))
            damages.append(Damage(sha256=sha256, why=rules.DAMAGE, refs=refs))
    return damages


def candidates(
    db: apsw.Connection, scope: Scope, *, cutoff: float, after: int, limit: int
) -> list[int]:
    """Refs that may go, behind a number."""
    rows = db.execute(
        f"SELECT id FROM refs WHERE {_MAY_GO} AND id > :after ORDER BY id LIMIT :limit",  # noqa: S608
        _mine(scope, cutoff=cutoff, after=after, limit=limit),
    )
    return [id_ for (id_,) in rows]


def remove(
    db: apsw.Connection, scope: Scope, ids: Sequence[int], *, cutoff: float, now: float
) -> Cleaned:
    """Remove those of the candidates that still may go, and leave what `info` tells of them."""
    rows = db.execute(
        f"SELECT id FROM refs WHERE {_MAY_GO}"  # noqa: S608 - constants
        " AND id IN (SELECT value FROM json_each(:ids))",
        _mine(scope, cutoff=cutoff, ids=json.dumps(ids)),
    )
    gone = originals.with_ids(db, scope, [id_ for (id_,) in rows])
    removed = size = 0
    for row in gone:
        detail = rules.to_json(msgspec.structs.replace(row.detail, compressed=""))
        db.execute("UPDATE refs SET content = NULL, detail = ? WHERE id = ?", (detail, row.id))
        originals.audit_ref(db, scope, "removed", row, now)
        run(db, summaries.drop_of_sources(scope, [row.sha256]))
        if row.content is not None and contents.sweep(db, row.content):
            removed, size = removed + 1, size + row.size
    return Cleaned(len(gone), removed, size)
