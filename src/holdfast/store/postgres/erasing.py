"""erasing: records that go for good: those of long ago, and all that a user has.

after sessions, before store.
"""

from __future__ import annotations

from typing import LiteralString

from holdfast.store.operations import facts, turns
from holdfast.store.postgres import blobs, originals, scrubbing, sessions
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.running import run
from holdfast.store.records import Erased
from holdfast.store.scope import Scope

SESSIONS_AT_ONCE = 10
RECORDS_AT_ONCE = 200
"""Removed in one transaction: others wait for it with what they want to write."""

_OLD_SESSIONS: LiteralString = """
SELECT session FROM holdfast.sessions
WHERE workspace = $1 AND username = $2 AND updated_at < $3 ORDER BY updated_at LIMIT $4
"""
_OLD_REFS: LiteralString = """
SELECT sha256, kind FROM holdfast.refs AS r
WHERE workspace = $1 AND username = $2 AND written_at < $3
  AND coalesce(accessed_at, written_at) < $3 AND NOT EXISTS (
    SELECT FROM holdfast.uses AS u
    JOIN holdfast.sessions AS s USING (workspace, username, session)
    WHERE (u.workspace, u.username, u.sha256, u.kind)
        = (r.workspace, r.username, r.sha256, r.kind))
LIMIT $4
"""
# Records of a session that is there go with it.
_OF_NO_SESSION: LiteralString = """NOT EXISTS (
    SELECT FROM holdfast.sessions AS s
    WHERE (s.workspace, s.username, s.session) = (x.workspace, x.username, x.session))"""
_OLD_TURNS: LiteralString = f"""
SELECT place FROM holdfast.remembered AS x
WHERE workspace = $1 AND username = $2 AND at < $3 AND {_OF_NO_SESSION} LIMIT $4
"""  # noqa: S608 - constants
_OLD_FACTS: LiteralString = """
SELECT id FROM holdfast.facts AS f
WHERE workspace = $1 AND username = $2 AND created_at < $3 AND NOT EXISTS (
    SELECT FROM holdfast.fact_sources AS x
    JOIN holdfast.sessions AS s USING (workspace, username, session) WHERE x.fact = f.number)
LIMIT $4
"""
_DELETE_OLD: tuple[LiteralString, ...] = (
    f"""
DELETE FROM holdfast.answers WHERE number IN (
    SELECT number FROM holdfast.answers AS x
    WHERE workspace = $1 AND username = $2 AND created_at < $3 AND {_OF_NO_SESSION} LIMIT $4)
RETURNING 1
""",  # noqa: S608 - constants
    f"""
DELETE FROM holdfast.journal WHERE ctid IN (
    SELECT ctid FROM holdfast.journal AS x
    WHERE workspace = $1 AND username = $2 AND at < $3 AND {_OF_NO_SESSION} LIMIT $4)
RETURNING 1
""",  # noqa: S608 - constants
    """
DELETE FROM holdfast.audit WHERE number IN (
    SELECT number FROM holdfast.audit WHERE workspace = $1 AND username = $2 AND at < $3 LIMIT $4)
RETURNING 1
""",
)
_TABLES: tuple[LiteralString, ...] = (
    "refs", "turns", "messages", "links", "sessions", "calibrations", "audit", "summaries", "jobs",
    "quotas", "answers", "journal", "tools", "daily_usage", "reservations",
)  # fmt: skip
_RECORDS = frozenset({"summaries", "jobs", "answers", "journal", "tools"})
_OWNERS: LiteralString = " UNION ".join(
    "SELECT workspace, username FROM holdfast." + table  # noqa: S608 - constants
    for table in (*_TABLES, "remembered", "facts")
)


async def owners(database: Database) -> list[Scope]:
    """Return everyone who has any record, be it only a summary or an entry of the audit."""
    return [Scope(row["username"], row["workspace"]) for row in await database.fetch(_OWNERS)]


async def expire(database: Database, scope: Scope, before: float, now: float) -> Erased:
    """Remove what was last used before a time, in parts that are each whole."""
    erased = Erased()
    while part := await database.transact(
        lambda connection: _expire(connection, scope, before, now)
    ):
        erased += part
    return erased


async def _expire(connection: Connection, scope: Scope, before: float, now: float) -> Erased:
    """Remove a part; nothing removed means none is left."""
    await blobs.lock_to_remove(connection, scope)
    erased = await _remove_old(connection, scope, before, now)
    if erased:  # else every sweep would make all proxies replace their workers
        await connection.execute(scrubbing.COUNT)
    return erased


async def _remove_old(connection: Connection, scope: Scope, before: float, now: float) -> Erased:
    old = (scope.workspace, scope.user, before)
    rows = await connection.fetch(_OLD_SESSIONS, *old, SESSIONS_AT_ONCE)
    if rows:
        erased = Erased()
        for row in rows:
            erased += await sessions.delete(connection, scope.of(row["session"]), now)
        return erased
    asked = (*old, RECORDS_AT_ONCE)
    if refs := await connection.fetch(_OLD_REFS, *asked):
        return Erased(refs=await originals.drop(connection, scope, refs, now))
    if places := await connection.fetch(_OLD_TURNS, *asked):
        return Erased(
            records=await run(connection, turns.remove(scope, [row["place"] for row in places]))
        )
    if ids := await connection.fetch(_OLD_FACTS, *asked):
        return Erased(
            records=await run(connection, facts.remove(scope, [row["id"] for row in ids]))
        )
    for statement in _DELETE_OLD:
        if gone := await connection.fetch(statement, *asked):
            return Erased(records=len(gone))
    return Erased()


async def erase(database: Database, scope: Scope, now: float) -> Erased:
    """Remove everything that a user has: in parts, and then what is left of it."""
    erased = await expire(database, scope, float("inf"), now)
    return erased + await database.transact(lambda connection: _erase_rest(connection, scope))


async def _erase_rest(connection: Connection, scope: Scope) -> Erased:
    await blobs.lock_to_remove(connection, scope)
    await connection.execute(scrubbing.COUNT)
    who = (scope.workspace, scope.user)
    records = await run(connection, turns.remove_all(scope))
    records += await run(connection, facts.remove_all(scope))
    gone = {}
    for table in _TABLES:
        statement = f"DELETE FROM holdfast.{table} WHERE workspace = $1 AND username = $2"  # noqa: S608
        status: str = await connection.execute(statement, *who)
        gone[table] = int(status.rpartition(" ")[2])
    await blobs.sweep_all(connection, scope)
    return Erased(
        sessions=gone["sessions"],
        turns=gone["turns"],
        refs=gone["refs"],
        records=records + sum(gone[table] for table in _RECORDS),
    )
