"""shelf: the shelf of remembered turns on SQLite: statements of turns, run by writer and readers.

shelf: after turns, before store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from holdfast.store import turn_shelf
from holdfast.store.scope import Scope
from holdfast.store.sqlite import turns
from holdfast.store.sqlite.driver import Job
from holdfast.store.sqlite.writer import Readers, Writer
from holdfast.store.turn_shelf import (
    MOST_AT_ONCE,
    Changes,
    IndexedTurn,
    Known,
    NewTurn,
    Remembered,
    TurnFilter,
    TurnShelf,
)

_T = TypeVar("_T")


class SqliteTurns(TurnShelf):
    """Keeps turns in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._read = readers.read

    async def _write(self, work: Job[_T]) -> _T:
        return await self._writer.submit(work)

    async def known(self, scope: Scope, turns_: Sequence[NewTurn]) -> list[Known]:
        """Which of these messages lie here."""
        turn_shelf.check(scope, turns_)
        return await self._read(partial(turns.known, scope=scope, turns=turns_))

    async def add(self, scope: Scope, turns_: Sequence[NewTurn]) -> int:
        """Put turns behind the last of the session."""
        turn_shelf.check(scope, turns_)
        bodies = [turns.body_of(turn.content) for turn in turns_]
        return await self._write(partial(turns.add, scope=scope, turns=turns_, bodies=bodies))

    async def changes(self, scope: Scope) -> Changes:
        """How often the turns changed."""
        return await self._read(partial(turns.changes, scope=scope))

    async def indexed(
        self, scope: Scope, *, after: int = 0, limit: int = MOST_AT_ONCE
    ) -> list[IndexedTurn]:
        """Indexes in the order of remembering."""
        return await self._read(partial(turns.indexed, scope=scope, after=after, limit=limit))

    async def with_words(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> list[IndexedTurn]:
        """Indexes of turns that hold any of these words."""
        return await self._read(partial(turns.with_words, scope=scope, words=words, limit=limit))

    async def turns(self, scope: Scope, places: Sequence[int]) -> dict[int, Remembered]:
        """The turns at these places."""
        return await self._read(partial(turns.turns, scope=scope, places=places))

    async def recent(self, scope: Scope, *, limit: int, before: int = 0) -> list[Remembered]:
        """The last turns of the session in order."""
        return await self._read(partial(turns.recent, scope=scope, limit=limit, before=before))

    async def select(
        self, scope: Scope, wanted: TurnFilter, *, limit: int = 100, after: int = 0
    ) -> list[tuple[int, Remembered]]:
        """Turns that a filter means."""
        work = partial(turns.select, scope=scope, wanted=wanted, limit=limit, after=after)
        return await self._read(work)

    async def forget(self, scope: Scope, places: Sequence[int]) -> int:
        """Remove turns without a trace."""
        return await self._writer.remove(partial(turns.forget, scope=scope, places=places))
