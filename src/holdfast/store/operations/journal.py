"""journal: journals: entries are appended, read and removed, never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.store import journal as rules_of_journals
from holdfast.store.journal import JournalEntry, JournalStore
from holdfast.store.operations import pages
from holdfast.store.pack import pack, unpack
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner, Values, load
from holdfast.store.transfer import PAGE, JournalLine, Page

TABLES = ("journal",)
"""Tables whose removed rows are overwritten."""
_BEGINNING = ("", "", 0)
"""Before the first entry of all journals."""

_sql = load("journal")


class SqlJournal(JournalStore):
    """Journals in a database."""

    def __init__(self, runner: Runner, clock: Callable[[], float]) -> None:
        self._runner = runner
        self._clock = clock

    async def append(
        self, scope: Scope, name: str, entries: Sequence[bytes], *, expect: int | None = None
    ) -> int:
        """Add entries after the last; return the sequence that the next one will have."""
        rules_of_journals.checked(name)
        now = self._clock()
        bodies = [_body(bytes(data), now) for data in entries]
        return await self._runner.write(_append, scope, name, bodies, expect)

    async def read(self, scope: Scope, name: str, after: int = 0) -> list[JournalEntry]:
        """Return the entries after a sequence."""

        def work() -> Operation[list[JournalEntry]]:
            rows = yield _sql.entries(scope, name=name, after=after)
            return [
                JournalEntry(row[0], rules_of_journals.whole(name, row[0], _data(row)), row[1])
                for row in rows
            ]

        return await self._runner.fetch(work)

    async def names(self, scope: Scope, prefix: str = "") -> list[str]:
        """Return the names of the scope's journals that begin so."""

        def work() -> Operation[list[str]]:
            rows = yield _sql.names(scope, prefix=prefix, length=len(prefix))
            return [name for (name,) in rows]

        return await self._runner.fetch(work)

    async def forget(self, scope: Scope, name: str) -> int:
        """Remove a journal without a trace; return how many entries it had."""

        def work() -> Operation[int]:
            return len((yield _sql.forget(scope, name=name)))

        return await self._runner.remove(TABLES, work)


def _body(data: bytes, at: float) -> Values:
    packed = pack(data)
    return {
        "at": at,
        "sha256": digest(data),
        "size": len(data),
        "codec": packed.codec,
        "data": packed.data,
    }


def _data(row: Row) -> bytes | None:
    """Return the bytes of an entry; None if they are damaged."""
    _, _, sha256, size, codec, data = row
    return unpack(codec, data, size=size, sha256=sha256)


def _next(scope: Scope, name: str) -> Operation[int]:
    """Return the sequence of the next entry, which no other transaction can take."""
    yield _sql.lock(scope, name=name)
    ((last,),) = yield _sql.last(scope, name=name)
    return int(last) + 1


def _append(
    scope: Scope, name: str, bodies: Sequence[Values], expect: int | None
) -> Operation[int]:
    place = yield from _next(scope, name)
    rules_of_journals.check_place(name, expect, place)
    yield _sql.add.many(
        scope,
        ({"name": name, "sequence": place + n, **body} for n, body in enumerate(bodies)),
    )
    return place + len(bodies)


def drop_of_session(scope: Scope) -> Operation[int]:
    """Remove the journals of the scope's session; return how many entries they had."""
    return len((yield _sql.drop_of_session(scope)))


def restore(scope: Scope, line: JournalLine) -> Operation[bool]:
    """Add an exported entry if it is the next of its journal; return whether it was."""
    session_scope, entry = scope.of(line.session), line.entry
    is_next = entry.sequence == (yield from _next(session_scope, line.name))
    if is_next:
        body = _body(entry.data, entry.at)
        yield _sql.add(session_scope, name=line.name, sequence=entry.sequence, **body)
    return is_next


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the entries after one; damaged ones are left out."""
    rows, last = yield from _page(scope, after or _BEGINNING)
    return [
        JournalLine(session=row[0], name=row[1], entry=JournalEntry(row[2], data, row[3]))
        for row in rows
        if (data := _data(row[2:])) is not None
    ], last


async def verify(runner: Runner, scope: Scope) -> list[Damage]:
    """Return the damages of entries. These stay: the entries after them depend on them."""
    rows = await pages.damaged_rows(runner, scope, _BEGINNING, _damaged)
    return [rules_of_journals.damaged(row[4]) for row in rows]


def _damaged(scope: Scope, after: Any) -> Operation[pages.RowPage]:
    rows, last = yield from _page(scope, after)
    return [row for row in rows if _data(row[2:]) is None], last


def _page(scope: Scope, after: Any) -> Operation[pages.RowPage]:
    """Return the rows after an entry, and the last of them; None at the end."""
    session, name, sequence = after
    rows = yield _sql.page(
        scope, after_session=session, after_name=name, after_sequence=sequence, limit=PAGE
    )
    return rows, tuple(rows[-1][:3]) if len(rows) == PAGE else None
