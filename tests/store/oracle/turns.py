"""The model of remembered turns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from holdfast.store import turn_store
from holdfast.store.scope import Scope
from holdfast.store.transfer import RememberedLine
from holdfast.store.turn_store import (
    MOST_AT_ONCE,
    Changes,
    IndexedTurn,
    KnownMessage,
    NewTurn,
    RememberedTurn,
    SessionEnds,
    TurnFilter,
    TurnStore,
)
from tests.store.oracle.facts import ModelFacts

_STEM = 4
"""Letters of a stem: longer words may have endings."""


@dataclass
class _Row:
    place: int
    turn: RememberedTurn
    print: str
    maker: str
    index: bytes

    @property
    def indexed(self) -> IndexedTurn:
        turn = self.turn
        return IndexedTurn(
            place=self.place,
            session=turn.session,
            role=turn.role,
            name=turn.name,
            number=turn.number,
            at=turn.at,
            maker=self.maker,
            index=self.index,
        )


@dataclass
class _Turns:
    """The turns of one user and workspace."""

    rows: dict[int, _Row] = field(default_factory=dict)
    """By place, in the order of remembering."""
    changes: Changes = field(default_factory=Changes)

    def of(self, session: str) -> list[_Row]:
        """A session in order."""
        rows = (row for row in self.rows.values() if row.turn.session == session)
        return sorted(rows, key=lambda row: (row.turn.number, row.place))


class ModelTurns(TurnStore):
    """Keeps turns in dictionaries."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts = facts
        self._scopes: dict[tuple[str, str], _Turns] = {}
        self._last = 0

    def _turns(self, scope: Scope) -> _Turns:
        return self._scopes.setdefault((scope.workspace, scope.user), _Turns())

    async def known(self, scope: Scope, turns: Sequence[NewTurn]) -> list[KnownMessage]:
        """Which of these messages lie here."""
        turn_store.check(scope, turns)
        session = self._turns(scope).of(scope.session)
        ends = SessionEnds(
            first=[(row.print, row.turn.id) for row in session[: len(turns)]],
            last=[(row.print, row.turn.id) for row in session[-len(turns) :]],
            number=session[-1].turn.number if session else 0,
            there={row.turn.id for row in session},
        )
        return turn_store.known_in(scope.session, turns, ends)

    async def add(self, scope: Scope, turns: Sequence[NewTurn]) -> int:
        """Append turns to the session."""
        turn_store.check(scope, turns)
        held = self._turns(scope)
        session = held.of(scope.session)
        number = session[-1].turn.number if session else 0
        there = {row.turn.id: row for row in session}
        added = remade = 0
        for turn in turns:
            row = there.get(turn.id)
            if row is None:
                added += 1
                remembered = turn_store.turn_of(scope, turn, number + added)
                made = (turn.print, turn.maker, turn.index)
                there[turn.id] = self._insert(held, remembered, made)
            elif turn.maker != row.maker:
                row.maker, row.index, remade = turn.maker, turn.index, 1
        held.changes = Changes(held.changes.added + added, held.changes.removed + remade)
        return added

    def _insert(self, held: _Turns, turn: RememberedTurn, made: tuple[str, str, bytes]) -> _Row:
        self._last += 1
        row = held.rows[self._last] = _Row(self._last, turn, *made)
        return row

    async def changes(self, scope: Scope) -> Changes:
        """How often the turns changed."""
        return self._turns(scope).changes

    async def indexed(
        self, scope: Scope, *, after: int = 0, limit: int = MOST_AT_ONCE
    ) -> list[IndexedTurn]:
        """Indexes in the order of remembering."""
        rows = (row for row in self._turns(scope).rows.values() if row.place > after)
        return [row.indexed for row in islice(rows, limit)]

    async def with_words(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> list[IndexedTurn]:
        """Indexes of turns that hold any of these words."""
        wanted = {word[:_STEM].lower() for word in words}

        def shared(row: _Row) -> int:
            return len(wanted & {word[:_STEM] for word in row.turn.content.lower().split()})

        rows = [
            (-shared(row), row.place, row)
            for row in self._turns(scope).rows.values()
            if scope.session in ("", row.turn.session)
        ]
        return [row.indexed for lack, _, row in sorted(rows, key=lambda each: each[:2]) if lack][
            :limit
        ]

    async def turns(self, scope: Scope, places: Sequence[int]) -> dict[int, RememberedTurn]:
        """The turns at these places."""
        rows = self._turns(scope).rows
        return {place: rows[place].turn for place in places if place in rows}

    async def recent(self, scope: Scope, *, limit: int, before: int = 0) -> list[RememberedTurn]:
        """The last turns of the session in order."""
        session = [
            row.turn
            for row in self._turns(scope).of(scope.session)
            if not before or row.turn.number < before
        ]
        return session[-limit:] if limit > 0 else []

    async def select(
        self, scope: Scope, wanted: TurnFilter, *, limit: int = 100, after: int = 0
    ) -> list[tuple[int, RememberedTurn]]:
        """Turns that a filter means."""
        rows = (
            (row.place, row.turn)
            for row in self._turns(scope).rows.values()
            if row.place > after and _is_meant(row.turn, wanted)
        )
        return list(islice(rows, max(limit, 0)))

    async def forget(self, scope: Scope, places: Sequence[int]) -> int:
        """Remove turns without a trace."""
        gone, _ = self._remove_with_facts(scope, places)
        return gone

    def drop_of_session(self, scope: Scope) -> int:
        """Remove the turns of a session; return how many there were."""
        held = self._turns(scope)
        return self._remove(held, [row.place for row in held.of(scope.session)])

    def expire(self, scope: Scope, before: float, kept: Collection[str]) -> int:
        """Remove old turns without a kept session; return their number."""
        held = self._turns(scope)
        gone = [
            place
            for place, row in held.rows.items()
            if row.turn.at < before and row.turn.session not in kept
        ]
        return sum(self._remove_with_facts(scope, gone))

    def _remove_with_facts(self, scope: Scope, places: Sequence[int]) -> tuple[int, int]:
        """Remove turns, and the facts that no other source has; return how many of each."""
        held = self._turns(scope)
        turns = [held.rows[place].turn for place in places if place in held.rows]
        return self._remove(held, places), self._facts.drop_of_turns(scope, turns)

    def _remove(self, held: _Turns, places: Sequence[int]) -> int:
        gone = [held.rows.pop(place) for place in places if place in held.rows]
        if gone:
            held.changes = Changes(held.changes.added, held.changes.removed + 1)
        return len(gone)

    def lines(self, scope: Scope) -> Iterator[RememberedLine]:
        """Every turn of the scope, in the order of remembering."""
        for row in self._turns(scope).rows.values():
            yield RememberedLine.of(row.turn, row.print, row.maker, row.index)

    def restore(self, scope: Scope, line: RememberedLine) -> bool:
        """Append an exported turn; return whether its id is new."""
        held = self._turns(scope)
        if any(row.turn.id == line.id for row in held.of(line.session)):
            return False
        self._insert(held, line.turn, (line.print, line.maker, line.index))
        held.changes = msgspec.structs.replace(held.changes, added=held.changes.added + 1)
        return True


def _is_meant(turn: RememberedTurn, wanted: TurnFilter) -> bool:
    return (
        (wanted.ids is None or turn.id in wanted.ids)
        and (wanted.session is None or turn.session == wanted.session)
        and (wanted.before is None or turn.at < wanted.before)
        and (wanted.since is None or turn.at >= wanted.since)
    )
