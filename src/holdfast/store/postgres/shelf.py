"""shelf: the shelf of remembered turns on PostgreSQL.

after turns, before store.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store import rules, turn_shelf
from holdfast.store.postgres import text, turns
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.scrubbing import Scrubber
from holdfast.store.records import Damage
from holdfast.store.scope import Scope
from holdfast.store.transfer import RememberedLine
from holdfast.store.turn_shelf import (
    MOST_AT_ONCE,
    Changes,
    IndexedTurn,
    Known,
    NewTurn,
    Remembered,
    SessionEnds,
    TurnFilter,
    TurnShelf,
)

_AT_A_TIME = 16


class PostgresTurns(TurnShelf):
    """Keeps turns in the database of the store."""

    def __init__(self, database: Database, scrubber: Scrubber) -> None:
        self._database = database
        self._scrubber = scrubber

    async def known(self, scope: Scope, turns_: Sequence[NewTurn]) -> list[Known]:
        """Which of these messages lie here."""
        turn_shelf.check(scope, turns_)

        async def work(connection: Connection) -> list[Known]:
            return await _known(connection, scope, turns_)

        return await self._database.transact(work)

    async def add(self, scope: Scope, turns_: Sequence[NewTurn]) -> int:
        """Put turns behind the last of the session."""
        turn_shelf.check(scope, turns_)

        async def work(connection: Connection) -> int:
            await connection.execute(turns.LOCK, *_who(scope))
            return await _add(connection, scope, turns_)

        return await self._database.transact(work)

    async def changes(self, scope: Scope) -> Changes:
        """How often the turns changed."""
        rows = await self._database.fetch(turns.CHANGES, *_who(scope))
        return Changes(rows[0]["added"], rows[0]["removed"]) if rows else Changes()

    async def indexed(
        self, scope: Scope, *, after: int = 0, limit: int = MOST_AT_ONCE
    ) -> list[IndexedTurn]:
        """Indexes in the order of remembering."""
        rows = await self._database.fetch(turns.INDEXED, *_who(scope), after, limit)
        return [turns.indexed(row) for row in rows]

    async def with_words(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> list[IndexedTurn]:
        """Indexes of turns that hold any of these words."""
        asked = (*_who(scope), scope.session, " ".join(words), limit)
        rows = await self._database.fetch(turns.WITH_WORDS, *asked)
        return [turns.indexed(row) for row in rows]

    async def turns(self, scope: Scope, places: Sequence[int]) -> dict[int, Remembered]:
        """The turns at these places."""
        rows = await self._database.fetch(turns.TURNS, *_who(scope), list(places))
        opened = [(row["place"], turns.opened(row)) for row in rows]
        return {place: turn for place, turn in opened if turn is not None}

    async def recent(self, scope: Scope, *, limit: int, before: int = 0) -> list[Remembered]:
        """The last turns of the session in order."""
        asked = (*_who(scope), scope.session, before, max(limit, 0))
        rows = await self._database.fetch(turns.RECENT, *asked)
        return [turn for row in reversed(rows) if (turn := turns.opened(row)) is not None]

    async def select(
        self, scope: Scope, wanted: TurnFilter, *, limit: int = 100, after: int = 0
    ) -> list[tuple[int, Remembered]]:
        """Turns that a filter means."""
        ids = None if wanted.ids is None else _sent(wanted.ids)
        when = (wanted.before, wanted.since)
        asked = (*_who(scope), after, ids, wanted.session, *when, max(limit, 0))
        rows = await self._database.fetch(turns.SELECT, *asked)
        opened = [(row["place"], turns.opened(row)) for row in rows]
        return [(place, turn) for place, turn in opened if turn is not None]

    async def forget(self, scope: Scope, places: Sequence[int]) -> int:
        """Remove turns without a trace."""

        async def work(connection: Connection) -> int:
            return await turns.remove(connection, scope, places)

        removed = await self._database.transact(work)
        self._scrubber.begin(["remembered"] if removed else [])
        return removed


def _who(scope: Scope) -> tuple[str, str]:
    return (scope.workspace, scope.user)


def _sent(names: Sequence[str]) -> list[str]:
    """Names as they stand in the database: inside an array the driver encodes by itself."""
    return [text.encode(name).decode() for name in names]


async def _known(connection: Connection, scope: Scope, turns_: Sequence[NewTurn]) -> list[Known]:
    key = (*_who(scope), scope.session)
    first = await connection.fetch(turns.FIRST, *key, len(turns_))
    last = await connection.fetch(turns.LAST, *key, len(turns_))
    given = [turn.id for turn in turns_ if turn.id]
    there = await connection.fetch(turns.THERE, *key, _sent(given)) if given else []
    ends = SessionEnds(
        first=[(row["print"], row["id"]) for row in first],
        last=[(row["print"], row["id"]) for row in reversed(last)],
        number=await connection.fetchval(turns.LAST_NUMBER, *key),
        there={row["id"] for row in there},
    )
    return turn_shelf.known_in(scope.session, turns_, ends)


async def _add(connection: Connection, scope: Scope, turns_: Sequence[NewTurn]) -> int:
    key = (*_who(scope), scope.session)
    number = await connection.fetchval(turns.LAST_NUMBER, *key)
    added = remade = 0
    for turn in turns_:
        made = (turn.print, turn.maker, turn.index)
        row = turns.values(scope, turn_shelf.turn_of(scope, turn, number + added + 1), made)
        if await connection.fetch(turns.ADD, *row):
            added += 1
        else:
            anew = await connection.fetch(turns.MAKE_ANEW, *key, turn.id, *made[1:])
            remade += len(anew)
    if added or remade:
        await connection.execute(turns.NOTE, *_who(scope), added, min(remade, 1))
    return added


async def restore(connection: Connection, scope: Scope, line: RememberedLine) -> bool:
    """Put an exported turn behind all others; whether there was none with its id."""
    await connection.execute(turns.LOCK, *_who(scope))
    row = turns.values(scope, line.turn, (line.print, line.maker, line.index))
    is_new = bool(await connection.fetch(turns.ADD, *row))
    if is_new:
        await connection.execute(turns.NOTE, *_who(scope), 1, 0)
    return is_new


async def unsound(connection: Connection, scope: Scope) -> list[Damage]:
    """Turns that are not what was said: they are never recalled, and go when they are forgotten."""
    rows = connection.cursor(turns.ALL, *_who(scope), prefetch=_AT_A_TIME)
    return [
        Damage(sha256=row["sha256"], why=rules.DAMAGE, refs=())
        async for row in rows
        if turns.opened(row) is None
    ]
