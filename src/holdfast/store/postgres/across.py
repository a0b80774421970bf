"""across: several workspaces of one user, in one query each.

after originals, sessions and upkeep, before store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import LiteralString

import msgspec

from holdfast.store import rules
from holdfast.store.across import ALWAYS, NOTHING, Period, workspaces_of
from holdfast.store.postgres import originals, sessions, text, upkeep
from holdfast.store.postgres.database import Database
from holdfast.store.records import RefInfo, SessionRecord, StoreStats, Turn, UsageTotal
from holdfast.store.scope import Scope

_LATEST: LiteralString = """
SELECT * FROM holdfast.sessions
WHERE username = $1 AND workspace = ANY ($2::text[])
ORDER BY updated_at DESC, session DESC, workspace DESC
LIMIT $3
"""

_BY_DAY: LiteralString = f"""
SELECT {upkeep.DAY} AS name, {upkeep.SUMS}
FROM holdfast.turns WHERE username = $1 AND workspace = ANY ($2::text[])
GROUP BY 1
"""  # noqa: S608 - constants

_OF_SESSIONS: LiteralString = f"""
SELECT place, {upkeep.SUMS}
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS named (workspace, session, place)
JOIN holdfast.turns AS t USING (workspace, session)
WHERE t.username = $1
GROUP BY place
"""  # noqa: S608 - constants

_FAILURES: LiteralString = """
SELECT workspace, session, record FROM holdfast.turns
WHERE username = $1 AND workspace = ANY ($2::text[]) AND failed
    AND started_at >= $3 AND started_at < $4
ORDER BY started_at DESC, workspace DESC, session DESC
LIMIT $5
"""


class PostgresAcross:
    """Several workspaces of one user."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def sessions(
        self, scopes: Sequence[Scope], *, limit: int
    ) -> list[tuple[Scope, SessionRecord]]:
        """Return the sessions last used."""
        user, theirs = _asked(scopes)
        rows = await self._database.fetch(_LATEST, user, theirs, max(limit, 0))
        return [
            (Scope(user, row["workspace"], row["session"]), sessions.record_of(row)) for row in rows
        ]

    async def usage_by_day(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of each day."""
        rows = await self._database.fetch(_BY_DAY, *_asked(scopes))
        return sorted((UsageTotal(**row) for row in rows), key=lambda total: total.name)

    async def usage_of_sessions(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of the session that each scope names."""
        user, _ = workspaces_of(scopes)
        workspaces = text.encoded(scope.workspace for scope in scopes)
        names = text.encoded(scope.session for scope in scopes)
        rows = await self._database.fetch(_OF_SESSIONS, user, workspaces, names)
        sums = {row["place"] - 1: {k: v for k, v in row.items() if k != "place"} for row in rows}
        return [
            UsageTotal(name=scope.session, **sums[place])
            if place in sums
            else msgspec.structs.replace(NOTHING, name=scope.session)
            for place, scope in enumerate(scopes)
        ]

    async def failures(
        self, scopes: Sequence[Scope], *, limit: int, within: Period = ALWAYS
    ) -> list[tuple[Scope, Turn]]:
        """Return the turns without an answer."""
        user, theirs = _asked(scopes)
        rows = await self._database.fetch(_FAILURES, user, theirs, *within, max(limit, 0))
        return [
            (Scope(user, row["workspace"], row["session"]), rules.from_json(row["record"], Turn))
            for row in rows
        ]

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
        rows = await originals.newest_of(
            self._database, (user, theirs), kind=kind, limit=limit, before=before
        )
        now = self._clock()
        return [(Scope(user, row["workspace"]), originals.info_of(row, now)) for row in rows]

    async def stats(self, scopes: Sequence[Scope]) -> StoreStats:
        """Return how much all scopes together hold."""
        user, workspaces = workspaces_of(scopes)
        return await upkeep.stats(self._database, user, workspaces, self._clock())


def _asked(scopes: Sequence[Scope]) -> tuple[str, list[str]]:
    user, workspaces = workspaces_of(scopes)
    return user, text.encoded(workspaces)
