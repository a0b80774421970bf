"""across: several workspaces of one user, in one query each.

across: after sessions, originals and upkeep, before store.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import apsw
import msgspec

from holdfast.store import rules
from holdfast.store.across import ALWAYS, NOTHING, Period, workspaces_of
from holdfast.store.records import RefInfo, SessionRecord, StoreStats, Turn, UsageTotal
from holdfast.store.scope import Scope
from holdfast.store.sqlite import originals, sessions, upkeep
from holdfast.store.sqlite.driver import Job

_T = TypeVar("_T")
_THEIRS = "owner = ?1 AND workspace IN (SELECT value FROM json_each(?2))"
_LATEST = f"""
SELECT s.workspace, s.record FROM (
    SELECT workspace, session, updated_at FROM sessions WHERE {_THEIRS}
    ORDER BY updated_at DESC, session DESC, workspace DESC LIMIT ?3
) AS n CROSS JOIN sessions AS s
    ON s.workspace = n.workspace AND s.owner = ?1 AND s.session = n.session
ORDER BY n.updated_at DESC, n.session DESC, n.workspace DESC
"""  # noqa: S608 - constants
"""Keys are sorted first: an index has all of them, and records are many times larger."""
_BY_DAY = f"""
SELECT date(started_at, 'unixepoch') AS name, {sessions.SUMS} FROM turns WHERE {_THEIRS}
GROUP BY name ORDER BY name
"""  # noqa: S608 - constants
_OF_SESSIONS = f"""
SELECT n.key, {sessions.SUMS} FROM json_each(?2) AS n CROSS JOIN turns AS t
    ON t.workspace = n.value ->> 0 AND t.owner = ?1 AND t.session = n.value ->> 1
GROUP BY n.key
"""  # noqa: S608 - constants
_FAILURES = f"""
SELECT workspace, session, record FROM turns
WHERE {_THEIRS} AND failed = 1 AND started_at >= ?3 AND started_at < ?4
ORDER BY started_at DESC, workspace DESC, session DESC LIMIT ?5
"""  # noqa: S608 - constants


class _Reading(Protocol):
    def __call__(self, job: Job[_T], /) -> Awaitable[_T]:
        """Run a job that reads."""


class SqliteAcross:
    """Several workspaces of one user."""

    def __init__(self, read: _Reading, read_all: _Reading, clock: Callable[[], float]) -> None:
        self._read = read
        self._read_all = read_all
        """Reads after the accesses that were noted before."""
        self._clock = clock

    async def sessions(
        self, scopes: Sequence[Scope], *, limit: int
    ) -> list[tuple[Scope, SessionRecord]]:
        """Return the sessions last used."""
        user, theirs = _asked(scopes)

        def job(db: apsw.Connection) -> list[tuple[Scope, SessionRecord]]:
            rows = db.execute(_LATEST, (user, theirs, max(limit, 0)))
            records = [(name, rules.from_json(text, SessionRecord)) for name, text in rows]
            return [(Scope(user, name, record.session), record) for name, record in records]

        return await self._read(job)

    async def usage_by_day(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of each day."""
        asked = _asked(scopes)
        return await self._read(lambda db: list(map(sessions.total_of, db.execute(_BY_DAY, asked))))

    async def usage_of_sessions(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of the session that each scope names."""
        user, _ = workspaces_of(scopes)
        named = json.dumps([(scope.workspace, scope.session) for scope in scopes])

        def job(db: apsw.Connection) -> dict[int, tuple[Any, ...]]:
            return {key: sums for key, *sums in db.execute(_OF_SESSIONS, (user, named))}

        sums = await self._read(job)
        return [
            sessions.total_of((scope.session, *sums[place]))
            if place in sums
            else msgspec.structs.replace(NOTHING, name=scope.session)
            for place, scope in enumerate(scopes)
        ]

    async def failures(
        self, scopes: Sequence[Scope], *, limit: int, within: Period = ALWAYS
    ) -> list[tuple[Scope, Turn]]:
        """Return the turns without an answer."""
        user, theirs = _asked(scopes)

        def job(db: apsw.Connection) -> list[tuple[Scope, Turn]]:
            rows = db.execute(_FAILURES, (user, theirs, *within, max(limit, 0)))
            return [
                (Scope(user, workspace, session), rules.from_json(record, Turn))
                for workspace, session, record in rows
            ]

        return await self._read(job)

    async def refs(
        self,
        scopes: Sequence[Scope],
        *,
        kind: str = "",
        limit: int,
        before: tuple[Scope, str] | None = None,
    ) -> list[tuple[Scope, RefInfo]]:
        """Return the refs stored last."""
        user, theirs = _asked(scopes)
        rows = await self._read_all(
            lambda db: originals.newest_of(
                db, (user, theirs), kind=kind, limit=limit, before=before
            )
        )
        now = self._clock()
        return [(Scope(user, workspace), row.info(now)) for workspace, row in rows]

    async def stats(self, scopes: Sequence[Scope]) -> StoreStats:
        """Return how much all scopes together hold."""
        user, workspaces = workspaces_of(scopes)
        now = self._clock()
        return await self._read(lambda db: upkeep.stats(db, user, workspaces, now))


def _asked(scopes: Sequence[Scope]) -> tuple[str, str]:
    user, workspaces = workspaces_of(scopes)
    return user, json.dumps(workspaces)
