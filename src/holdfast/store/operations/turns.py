"""turns: remembered turns: adding them, finding them by their words, reading and removing them."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.store import rules, turn_store
from holdfast.store.operations import facts, pages
from holdfast.store.pack import pack, unpack
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Rows, Runner, Statement, Values, load
from holdfast.store.transfer import PAGE, Page, RememberedLine
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

TABLES = ("remembered",)
"""Tables whose removed rows are overwritten."""
_MOST_INDEXED = 200_000
"""Characters of a turn whose words can be searched; a tsvector has room for a megabyte."""
_SESSION_SHARE = 4
"""Candidates for each turn of one session that is asked for: SQLite finds those of all sessions."""

_sql = load("turns")


class SqlTurnStore(TurnStore):
    """Remembered turns in a database."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def known(self, scope: Scope, turns: Sequence[NewTurn]) -> list[KnownMessage]:
        """Return which of these messages are stored, and the ids of the others."""
        turn_store.check(scope, turns)
        return await self._runner.fetch(_known, scope, turns)

    async def add(self, scope: Scope, turns: Sequence[NewTurn]) -> int:
        """Add turns after the last of the session; return how many were new."""
        turn_store.check(scope, turns)
        bodies = [_body(turn.content) for turn in turns]
        return await self._runner.write(_add, scope, turns, bodies)

    async def changes(self, scope: Scope) -> Changes:
        """Return how often the turns changed."""

        def work() -> Operation[Changes]:
            rows = yield _sql.changes(scope)
            return Changes(*rows[0]) if rows else Changes()

        return await self._runner.fetch(work)

    async def indexed(
        self, scope: Scope, *, after: int = 0, limit: int = MOST_AT_ONCE
    ) -> list[IndexedTurn]:
        """Return indexes in the order of their places."""

        def work() -> Operation[list[IndexedTurn]]:
            return _indexed((yield _sql.indexed(scope, after=after, limit=limit)))

        return await self._runner.fetch(work)

    async def with_words(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> list[IndexedTurn]:
        """Return indexes of turns that hold any of these words, the likeliest first."""

        def work() -> Operation[list[IndexedTurn]]:
            rows = yield _sql.with_words(
                scope,
                query=_query(scope, words),
                candidates=limit * _SESSION_SHARE if scope.session else limit,
                words=" ".join(words),
                limit=limit,
            )
            return _indexed(rows[:limit])

        return await self._runner.fetch(work)

    async def turns(self, scope: Scope, places: Sequence[int]) -> dict[int, RememberedTurn]:
        """Return the turns at these places."""

        def work() -> Operation[dict[int, RememberedTurn]]:
            return dict(_placed((yield _sql.at_places(scope, places=places))))

        return await self._runner.fetch(work)

    async def recent(self, scope: Scope, *, limit: int, before: int = 0) -> list[RememberedTurn]:
        """Return the last turns of the session in order."""

        def work() -> Operation[list[RememberedTurn]]:
            rows = yield _sql.recent(scope, before=before, limit=max(limit, 0))
            return [turn for row in reversed(rows) if (turn := _turn(row)) is not None]

        return await self._runner.fetch(work)

    async def select(
        self, scope: Scope, wanted: TurnFilter, *, limit: int = 100, after: int = 0
    ) -> list[tuple[int, RememberedTurn]]:
        """Return the turns that pass a filter, with their places."""

        def work() -> Operation[list[tuple[int, RememberedTurn]]]:
            rows = yield _sql.filtered(
                scope,
                after=after,
                has_any_id=wanted.ids is None,
                ids=wanted.ids or (),
                is_any_session=wanted.session is None,
                said_in=wanted.session or "",
                before=math.inf if wanted.before is None else wanted.before,
                since=-math.inf if wanted.since is None else wanted.since,
                limit=max(limit, 0),
            )
            return _placed(rows)

        return await self._runner.fetch(work)

    async def forget(self, scope: Scope, places: Sequence[int]) -> int:
        """Remove turns, and facts without another source, without a trace."""
        return await self._runner.remove((*TABLES, *facts.TABLES), remove, scope, places)


# --- texts and words -----------------------------------------------------------------------------


def _body(content: str) -> Values:
    """Return the values of a content; lone surrogates, which conversations may hold, are kept."""
    data = content.encode("utf-8", "surrogatepass")
    packed = pack(data)
    return {
        "sha256": digest(data),
        "size": len(data),
        "codec": packed.codec,
        "data": packed.data,
        "words": _searched(content),
    }


def _content(row: Row) -> str | None:
    """Return the text of hash, size, codec and data; None if it is damaged."""
    sha256, size, codec, data = row
    content = unpack(codec, data, size=size, sha256=sha256)
    return None if content is None else content.decode("utf-8", "surrogatepass")


def _searched(content: str) -> str:
    return content[:_MOST_INDEXED].encode("utf-8", "replace").decode()


# What FTS5 takes for one word, and no more: it would look for the two of "it's" as a phrase, and an
# index without places refuses that. It knows fewer letters beyond the first plane than Python does.
_PART = re.compile(r"[^\W_\U00010000-\U0010ffff]+")


def _scope_word(scope: Scope) -> str:
    """Return the word that marks the turns of this user and workspace in SQLite's index."""
    name = f"{len(scope.workspace)}:{scope.workspace}{scope.user}"
    return "s" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _query(scope: Scope, words: Sequence[str]) -> str:
    """Return SQLite's query for any of these words."""
    parts = dict.fromkeys(part for word in words for part in _PART.findall(_searched(word)))
    if not parts:
        return "scope : none"  # which is no scope's word
    quoted = " OR ".join(f'"{part}"' for part in parts)
    return f"scope : {_scope_word(scope)} AND words : ({quoted})"


# --- reading -------------------------------------------------------------------------------------


def _turn(row: Row) -> RememberedTurn | None:
    """Return a turn; None if its content is damaged."""
    content = _content(row[7:])
    if content is None:
        return None
    id_, session, role, at, name, number, tokens = row[:7]
    return RememberedTurn(
        id=id_,
        session=session,
        role=role,
        content=content,
        at=at,
        name=name,
        number=number,
        tokens=tokens,
    )


def _placed(rows: Rows) -> list[tuple[int, RememberedTurn]]:
    return [(row[0], turn) for row in rows if (turn := _turn(row[1:])) is not None]


def _indexed(rows: Rows) -> list[IndexedTurn]:
    names = IndexedTurn.__struct_fields__
    return [IndexedTurn(**dict(zip(names, row, strict=True))) for row in rows]


def _known(scope: Scope, turns: Sequence[NewTurn]) -> Operation[list[KnownMessage]]:
    first = yield _sql.first(scope, limit=len(turns))
    last = yield _sql.last(scope, limit=len(turns))
    ids = [turn.id for turn in turns if turn.id]
    known_ids = (yield _sql.known_ids(scope, ids=ids)) if ids else []
    ends = SessionEnds(
        first=[(print_, id_) for print_, id_ in first],
        last=[(print_, id_) for print_, id_ in reversed(last)],
        number=(yield from _last_number(scope)),
        there={id_ for (id_,) in known_ids},
    )
    return turn_store.known_in(scope.session, turns, ends)


def _last_number(scope: Scope) -> Operation[int]:
    ((number,),) = yield _sql.last_number(scope)
    return int(number)


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the turns after a place; damaged ones are left out."""
    rows = yield _sql.page(scope, after=after or 0, limit=PAGE)
    exported = [
        RememberedLine.of(turn, *row[1:4]) for row in rows if (turn := _turn(row[4:])) is not None
    ]
    return [*exported], pages.last_key(rows)


async def verify(runner: Runner, scope: Scope) -> list[Damage]:
    """Return the damages of turns whose contents changed; these are never recalled."""
    rows = await pages.damaged_rows(runner, scope, 0, _damaged)
    return [Damage(sha256=row[11], why=rules.DAMAGE, refs=()) for row in rows]


def _damaged(scope: Scope, after: int) -> Operation[pages.RowPage]:
    rows = yield _sql.page(scope, after=after, limit=PAGE)
    return [row for row in rows if _content(row[11:]) is None], pages.last_key(rows)


# --- writing -------------------------------------------------------------------------------------


def _add(scope: Scope, turns: Sequence[NewTurn], bodies: Sequence[Values]) -> Operation[int]:
    yield _sql.lock(scope)
    number = yield from _last_number(scope)
    added = remade = 0
    for turn, body in zip(turns, bodies, strict=True):
        placed = turn_store.turn_of(scope, turn, number + added + 1)
        columns = (turn.print, turn.maker, turn.index)
        if (yield from _insert(scope, placed, body, columns)):
            added += 1
        else:
            remade += len(
                (yield _sql.index_anew(scope, id=turn.id, maker=turn.maker, index=turn.index))
            )
    yield from _note(scope, added, remade)
    return added


def _insert(
    scope: Scope, turn: RememberedTurn, body: Values, made: tuple[str, str, bytes]
) -> Operation[bool]:
    """Write a turn with its print, maker and index; return whether there was none of its id."""
    print_, maker, index = made
    rows = yield _sql.add(
        scope,
        id=turn.id,
        said_in=turn.session,
        number=turn.number,
        role=turn.role,
        name=turn.name,
        at=turn.at,
        tokens=turn.tokens,
        print=print_,
        maker=maker,
        index=index,
        **body,
    )
    rows = rows or (yield _sql.added(scope))
    for (place,) in rows:
        word = _scope_word(scope)
        yield _sql.add_words(scope, place=place, scope_word=word, words=body["words"])
    return bool(rows)


def _note(scope: Scope, added: int, removed: int) -> Operation[None]:
    if added or removed:
        yield _sql.note(scope, added=added, removed=min(removed, 1))


def restore(scope: Scope, line: RememberedLine) -> Operation[bool]:
    """Write an exported turn after all others; return whether there was none of its id."""
    yield _sql.lock(scope)
    columns = (line.print, line.maker, line.index)
    is_new = yield from _insert(scope, line.turn, _body(line.content), columns)
    yield from _note(scope, int(is_new), 0)
    return is_new


def remove(scope: Scope, places: Sequence[int]) -> Operation[int]:
    """Remove turns, and facts without another source, without a trace; return the turns' number."""
    removed, _ = yield from _remove_with_facts(scope, places)
    return removed


def expire(scope: Scope, places: Sequence[int]) -> Operation[int]:
    """Remove turns, and facts without another source; return the number of both."""
    return sum((yield from _remove_with_facts(scope, places)))


def _remove_with_facts(scope: Scope, places: Sequence[int]) -> Operation[tuple[int, int]]:
    yield _sql.lock(scope)
    removed = 0
    ids_by_session: dict[str, list[str]] = {}
    for at in range(0, len(places), MOST_AT_ONCE):
        rows = yield _sql.remove(scope, places=places[at : at + MOST_AT_ONCE])
        yield from _remove_words(scope, rows)
        removed += len(rows)
        for *_, session, turn_id in rows:
            ids_by_session.setdefault(session, []).append(turn_id)
    yield from _note(scope, 0, removed)
    return removed, (yield from facts.drop_of_turns(scope, ids_by_session))


def remove_all(scope: Scope) -> Operation[int]:
    """Remove all turns without a trace; return how many there were."""
    yield _sql.lock(scope)
    return (yield from _remove_in_parts(scope, _sql.remove_some))


def drop_of_session(scope: Scope) -> Operation[int]:
    """Remove the turns of the scope's session without a trace; return how many there were."""
    return (yield from _remove_in_parts(scope, _sql.remove_of_session))


def _remove_in_parts(scope: Scope, statement: Statement) -> Operation[int]:
    removed, part = 0, MOST_AT_ONCE
    while part == MOST_AT_ONCE:
        rows = yield statement(scope, limit=MOST_AT_ONCE)
        yield from _remove_words(scope, rows)
        part = len(rows)
        removed += part
    yield from _note(scope, 0, removed)
    return removed


def _remove_words(scope: Scope, rows: Iterable[Row]) -> Operation[None]:
    """Remove the words of removed turns from SQLite's index; those of a damaged one are unknown."""
    word = _scope_word(scope)
    contents = [(row[0], _content(row[1:5])) for row in rows if row[4] is not None]
    yield _sql.remove_words.many(
        scope,
        (
            {"place": place, "scope_word": word, "words": _searched(content)}
            for place, content in contents
            if content is not None
        ),
    )
