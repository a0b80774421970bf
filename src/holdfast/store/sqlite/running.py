"""running: operations on SQLite, each as one job of the writer or of a reader.

running: after writer. All statements of an operation run in one thread, one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, ParamSpec, TypeVar

import apsw

from holdfast.store import rules
from holdfast.store.deadline import REQUEST_SECONDS
from holdfast.store.sqlite.writer import Readers, Writer
from holdfast.store.statements import Call, Operation

_AT_ONCE = 32
"""Rows of one statement: each number of them is one more statement to be prepared."""
_T = TypeVar("_T")
_P = ParamSpec("_P")


def run(db: apsw.Connection, operation: Operation[_T]) -> _T:
    """Run an operation inside of the connection's transaction."""
    try:
        call = next(operation)
        while True:
            call = operation.send(_rows(db, call))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _rows(db: apsw.Connection, call: Call) -> list[Any]:
    statement, scope, values, many = call
    rows: list[Any] = []
    for text in statement.sqlite:
        if many is None:
            rows = db.execute(text.sql, text.bind(scope, values, _as_json)).fetchall()
        elif len(many) == 1:  # mostly; `executemany` takes half as long again
            db.execute(text.sql, text.bind(scope, many[0], _as_json))
        elif text.several is None:
            db.executemany(text.sql, text.bind_many(scope, many))
        else:
            _insert(db, text.several, text.bind_many(scope, many))
    return rows


def _insert(
    db: apsw.Connection, several: Callable[[int], str], rows: list[tuple[Any, ...]]
) -> None:
    """Insert rows in as few statements as can be.

    The driver releases Python's lock for each statement and must get it back: a turn of twenty
    messages, with a lookup and an insert for each, waited sixty times.
    """
    for at in range(0, len(rows), _AT_ONCE):
        part = rows[at : at + _AT_ONCE]
        db.execute(several(len(part)), tuple(chain.from_iterable(part)))


def _as_json(values: Sequence[Any]) -> str:
    return rules.to_json(list(values))


class SqliteRunner:
    """Runs operations in the threads of a store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._noting: asyncio.Future[None] | None = None
        """The latest note, until it is written."""

    async def look(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Find rows by a key."""
        return await self._readers.look(lambda db: run(db, begin(*args, **kwargs)))

    async def read(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Read one state of the store."""
        return await self._readers.read(lambda db: run(db, begin(*args, **kwargs)))

    fetch = read

    async def write(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Write, together with others that wait."""
        return await self._writer.submit(lambda db: run(db, begin(*args, **kwargs)))

    async def note(
        self, begin: Callable[_P, Operation[None]], *args: _P.args, **kwargs: _P.kwargs
    ) -> None:
        """Write without waiting."""
        self._noting = self._writer.submit(lambda db: run(db, begin(*args, **kwargs)))
        self._noting.add_done_callback(_take_error)

    async def noted(self) -> None:
        """Wait for the latest note: the writer keeps the order."""
        noting = self._noting
        if noting is None or noting.done():
            return
        if noting.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([noting], timeout=REQUEST_SECONDS)

    async def compute(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Work in a thread of the readers."""
        return await self._readers.run(partial(work, *args, **kwargs))

    write_one = write

    async def remove(
        self,
        tables: Sequence[str],  # noqa: ARG002 - the whole file is scrubbed
        begin: Callable[_P, Operation[_T]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Write, and overwrite the removed records soon."""
        return await self._writer.remove(lambda db: run(db, begin(*args, **kwargs)))


def _take_error(noted: asyncio.Future[None]) -> None:
    """Take the error of a note: nobody waits for it, and asyncio would log its text."""
    if not noted.cancelled():
        noted.exception()
