"""Several workspaces of one user, in one query each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.store import rules
from holdfast.store.across import ALWAYS, NOTHING, Period, workspaces_of
from holdfast.store.operations import originals, turn_records, upkeep
from holdfast.store.records import RefInfo, SessionRecord, StoreStats, Turn, UsageTotal
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Rows, Runner, load

_sql = load("sessions")


class SqlAcross:
    """Several workspaces of one user, in a database."""

    def __init__(self, runner: Runner, clock: Callable[[], float]) -> None:
        self._runner = runner
        self._clock = clock

    async def sessions(
        self, scopes: Sequence[Scope], *, limit: int
    ) -> list[tuple[Scope, SessionRecord]]:
        """Return the sessions last used."""
        user, workspaces = workspaces_of(scopes)

        def work() -> Operation[Rows]:
            most = max(limit, 0)
            return (yield _sql.latest_of_many(Scope(user), workspaces=workspaces, limit=most))

        rows = await self._runner.fetch(work) if scopes else []
        return [
            (Scope(user, workspace, session), rules.from_json(record, SessionRecord))
            for workspace, session, record in rows
        ]

    async def usage_by_day(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of each day."""
        user, workspaces = workspaces_of(scopes)

        def work() -> Operation[Rows]:
            return (yield _sql.usage_of_many_by_day(Scope(user), workspaces=workspaces))

        return turn_records.totals(await self._runner.fetch(work) if scopes else [])

    async def usage_of_sessions(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of the session that each scope names."""
        user, _ = workspaces_of(scopes)

        def work() -> Operation[Rows]:
            # SQLite takes pairs, and PostgreSQL two lists.
            named = [(scope.workspace, scope.session) for scope in scopes]
            workspaces, names = [name for name, _ in named], [name for _, name in named]
            return (
                yield _sql.usage_of_sessions(
                    Scope(user), named=named, workspaces=workspaces, names=names
                )
            )

        rows = await self._runner.fetch(work) if scopes else []
        sums = {place: of_session for place, *of_session in rows}
        return [
            turn_records.total_of((scope.session, *sums[place]))
            if place in sums
            else msgspec.structs.replace(NOTHING, name=scope.session)
            for place, scope in enumerate(scopes)
        ]

    async def failures(
        self, scopes: Sequence[Scope], *, limit: int, within: Period = ALWAYS
    ) -> list[tuple[Scope, Turn]]:
        """Return the turns without an answer."""
        user, workspaces = workspaces_of(scopes)

        def work() -> Operation[Rows]:
            return (
                yield _sql.failures(
                    Scope(user),
                    workspaces=workspaces,
                    start=within.start,
                    stop=within.stop,
                    limit=max(limit, 0),
                )
            )

        rows = await self._runner.fetch(work) if scopes else []
        return [
            (Scope(user, workspace, session), rules.from_json(record, Turn))
            for workspace, session, record in rows
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
        user, workspaces = workspaces_of(scopes)
        if not scopes:
            return []
        await self._runner.noted()
        rows = await self._runner.fetch(
            originals.newest_of_many, Scope(user), workspaces, kind=kind, limit=limit, before=before
        )
        now = self._clock()
        return [(Scope(user, workspace), row.info(now)) for workspace, row in rows]

    async def stats(self, scopes: Sequence[Scope]) -> StoreStats:
        """Return how much all scopes together hold."""
        user, workspaces = workspaces_of(scopes)
        if not scopes:
            return rules.added_stats([])
        return await self._runner.read(upkeep.stats, Scope(user), workspaces, self._clock())
