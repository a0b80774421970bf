"""erasing: records that go for good: those of long ago, and all that a user has, in SQL.

erasing: after sessions. Each function is a job for a connection, inside of a transaction.
"""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.store.operations import facts, turns
from holdfast.store.records import Erased
from holdfast.store.scope import Scope
from holdfast.store.sqlite import contents, originals, scrubbing, sessions
from holdfast.store.sqlite.running import run

SESSIONS_AT_ONCE = 10
RECORDS_AT_ONCE = 200
"""Removed in one transaction: others wait for it with what they want to write."""

_MINE = "workspace = :workspace AND owner = :owner"

# Records of a session that is there go with it.
_OF_NO_SESSION = (
    "NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.workspace = x.workspace"
    " AND s.owner = x.owner AND s.session = x.session)"
)
_OLD_SESSIONS = (
    f"SELECT session FROM sessions WHERE {_MINE} AND updated_at < :before"  # noqa: S608 - constants
    " ORDER BY updated_at LIMIT :limit"
)
_OLD_REFS = (
    f"SELECT id FROM refs WHERE {_MINE} AND written_at < :before"  # noqa: S608 - constants
    " AND coalesce(accessed_at, written_at) < :before AND NOT EXISTS (SELECT 1 FROM uses AS x"
    " JOIN sessions AS s ON s.workspace = x.workspace AND s.owner = x.owner"
    " AND s.session = x.session WHERE x.ref = refs.id) LIMIT :limit"
)
_OLD_TURNS = (
    f"SELECT place FROM remembered AS x WHERE {_MINE} AND at < :before"  # noqa: S608 - constants
    f" AND {_OF_NO_SESSION} LIMIT :limit"
)
_OLD_FACTS = (
    f"SELECT id FROM facts WHERE {_MINE} AND created_at < :before"  # noqa: S608 - constants
    " AND NOT EXISTS (SELECT 1 FROM fact_sources AS x JOIN sessions AS s"
    " ON s.workspace = x.workspace AND s.owner = x.owner AND s.session = x.session"
    " WHERE x.fact = facts.number) LIMIT :limit"
)
_DELETE_OLD = (
    "DELETE FROM answers WHERE number IN (SELECT number FROM answers AS x"  # noqa: S608 - constants
    f" WHERE {_MINE} AND created_at < :before AND {_OF_NO_SESSION} LIMIT :limit)",
    "DELETE FROM journal WHERE rowid IN (SELECT rowid FROM journal AS x"  # noqa: S608 - constants
    f" WHERE {_MINE} AND at < :before AND {_OF_NO_SESSION} LIMIT :limit)",
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit"  # noqa: S608 - constants
    f" WHERE {_MINE} AND at < :before LIMIT :limit)",
)

_TABLES = (
    "refs", "turns", "messages", "links", "sessions", "calibrations", "audit", "summaries", "jobs",
    "quotas", "facts", "answers", "journal", "tools", "daily_usage", "reservations",
)  # fmt: skip
"""All that a user has, but remembered turns; `uses` and the like go with what they belong to."""
_RECORDS = frozenset({"summaries", "jobs", "facts", "answers", "journal", "tools"})


def owners(db: apsw.Connection) -> list[Scope]:
    """Return everyone who has any record, be it only a summary or an entry of the audit."""
    each = " UNION ".join(
        f"SELECT workspace, owner FROM {table}"  # noqa: S608 - constants
        for table in (*_TABLES, "remembered")
    )
    return [Scope(owner, workspace) for workspace, owner in db.execute(each)]


def expire(db: apsw.Connection, scope: Scope, *, before: float, now: float) -> Erased:
    """Remove a part of what was last used before a time; nothing removed means none is left."""
    erased = _expire(db, scope, before, now)
    if erased:
        scrubbing.count_removal(db)
    return erased


def _expire(db: apsw.Connection, scope: Scope, before: float, now: float) -> Erased:
    asked: dict[str, Any] = {
        "workspace": scope.workspace,
        "owner": scope.user,
        "before": before,
        "limit": RECORDS_AT_ONCE,
    }
    names = _column(db, _OLD_SESSIONS, asked | {"limit": SESSIONS_AT_ONCE})
    if names:
        parts = [sessions.delete(db, scope.of(name), now) for name in names]
        return sum(parts, Erased())
    if ids := _column(db, _OLD_REFS, asked):
        rows = originals.with_ids(db, scope, ids)
        for row in rows:
            originals.drop(db, scope, row, now)
        return Erased(refs=len(rows))
    if places := _column(db, _OLD_TURNS, asked):
        return Erased(records=run(db, turns.remove(scope, places)))
    if fact_ids := _column(db, _OLD_FACTS, asked):
        return Erased(records=run(db, facts.remove(scope, fact_ids)))
    for statement in _DELETE_OLD:
        db.execute(statement, asked)
        if db.changes():
            return Erased(records=db.changes())
    return Erased()


def erase_rest(db: apsw.Connection, scope: Scope) -> Erased:
    """Remove everything else that a user has, and contents that nobody refers to."""
    asked = {"workspace": scope.workspace, "owner": scope.user}
    records = run(db, turns.remove_all(scope)) + run(db, facts.remove_all(scope))
    scrubbing.count_removal(db)
    gone = {}
    for table in _TABLES:
        db.execute(f"DELETE FROM {table} WHERE {_MINE}", asked)  # noqa: S608 - constants
        gone[table] = db.changes()
    contents.sweep_all(db, scope)
    return Erased(
        sessions=gone["sessions"],
        turns=gone["turns"],
        refs=gone["refs"],
        records=records + sum(gone[table] for table in _RECORDS),
    )


def _column(db: apsw.Connection, statement: str, values: dict[str, Any]) -> list[Any]:
    return [value for (value,) in db.execute(statement, values)]
