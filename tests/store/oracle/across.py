"""The model of reading several workspaces of one user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from holdfast.store import rules
from holdfast.store.across import ALWAYS, NOTHING, Period, workspaces_of
from holdfast.store.records import RefInfo, SessionRecord, StoreStats, Turn, UsageTotal
from holdfast.store.refs import parse
from holdfast.store.scope import Scope
from tests.store.oracle.records import Ref, Shelf

_Shelves = Mapping[tuple[str, str], Shelf]


class ModelAcross:
    """Reads the shelves that some scopes name."""

    def __init__(
        self,
        shelves: _Shelves,
        info: Callable[[Scope, Ref], RefInfo],
        stats: Callable[[Scope], StoreStats],
    ) -> None:
        self._shelves = shelves
        self._info = info
        self._stats = stats

    def _of(self, scopes: Sequence[Scope]) -> list[tuple[Scope, Shelf]]:
        user, workspaces = workspaces_of(scopes)
        keys = [(workspace, user) for workspace in workspaces]
        return [(Scope(user, key[0]), self._shelves[key]) for key in keys if key in self._shelves]

    async def sessions(
        self, scopes: Sequence[Scope], *, limit: int
    ) -> list[tuple[Scope, SessionRecord]]:
        """Return the sessions last used."""
        every = [
            (scope.of(record.session), record)
            for scope, shelf in self._of(scopes)
            for record in shelf.sessions.values()
        ]
        every.sort(key=lambda pair: (pair[1].updated_at, pair[1].session, pair[0].workspace))
        return every[::-1][: max(limit, 0)]

    async def usage_by_day(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of each day."""
        days: dict[str, list[Turn]] = {}
        for _, turn in self._turns(scopes):
            days.setdefault(rules.day_of(turn.started_at), []).append(turn)
        return [rules.total(day, turns) for day, turns in sorted(days.items())]

    async def usage_of_sessions(self, scopes: Sequence[Scope]) -> list[UsageTotal]:
        """Return the usage of the session that each scope names."""
        workspaces_of(scopes)
        totals = []
        for scope in scopes:
            shelf = self._shelves.get((scope.workspace, scope.user), Shelf())
            turns = list(shelf.turns.get(scope.session, {}).values())
            none = msgspec.structs.replace(NOTHING, name=scope.session)
            totals.append(rules.total(scope.session, turns) if turns else none)
        return totals

    async def failures(
        self, scopes: Sequence[Scope], *, limit: int, within: Period = ALWAYS
    ) -> list[tuple[Scope, Turn]]:
        """Return the turns without an answer."""
        failed = [
            (scope, turn)
            for scope, turn in self._turns(scopes)
            if turn.usage.failed and within.start <= turn.started_at < within.stop
        ]
        failed.sort(key=lambda pair: (pair[1].started_at, pair[0].workspace, pair[0].session))
        return failed[::-1][: max(limit, 0)]

    def _turns(self, scopes: Sequence[Scope]) -> list[tuple[Scope, Turn]]:
        return [
            (scope.of(session), turn)
            for scope, shelf in self._of(scopes)
            for session, turns in shelf.turns.items()
            for turn in turns.values()
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
        below = float("inf") if before is None else self._place(*before)
        every = [
            (scope, ref)
            for scope, shelf in self._of(scopes)
            for ref in shelf.live()
            if ref.place < below and kind in ("", ref.content.kind)
        ]
        every.sort(key=lambda pair: -pair[1].place)
        return [(scope, self._info(scope, ref)) for scope, ref in every[: max(limit, 0)]]

    def _place(self, scope: Scope, ref: str) -> int:
        name = parse(ref)
        shelf = self._shelves.get((scope.workspace, scope.user), Shelf())
        last = None if name is None else shelf.find(name)
        if last is None:
            raise rules.no_place_to_go_on(ref)
        return last.place

    async def stats(self, scopes: Sequence[Scope]) -> StoreStats:
        """Return how much all scopes together hold."""
        return rules.added_stats([self._stats(scope) for scope, _ in self._of(scopes)])
