"""running: operations on PostgreSQL, statement by statement.

running: after database and scrubbing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from holdfast.store.postgres import scrubbing
from holdfast.store.postgres.database import Connection, ConnectionPool
from holdfast.store.postgres.scrubbing import TableScrubber
from holdfast.store.postgres.text import encode
from holdfast.store.statements import Call, Operation

_T = TypeVar("_T")
_P = ParamSpec("_P")


async def run(connection: Connection, operation: Operation[_T]) -> _T:
    """Run an operation inside of the connection's transaction."""
    return await _run(operation, lambda call: _rows(connection, call))


async def _run(operation: Operation[_T], rows_of: Callable[[Call], Awaitable[list[Any]]]) -> _T:
    try:
        call = next(operation)
        while True:
            call = operation.send(await rows_of(call))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _rows(connection: Connection, call: Call) -> list[Any]:
    statement, scope, values, many = call
    rows: list[Any] = []
    for text in statement.postgres:
        if many is None:
            rows = await connection.fetch(text.sql, *text.bind(scope, values, _as_array))
        elif many:
            await connection.executemany(text.sql, text.bind_many(scope, many))
    return rows


def _as_array(values: Sequence[Any]) -> list[Any]:
    """Return a list for an array, inside of which the driver would encode text by itself."""
    return [encode(each).decode() if isinstance(each, str) else each for each in values]


class PostgresRunner:
    """Runs operations on the connections of a database."""

    def __init__(self, database: ConnectionPool, scrubber: TableScrubber) -> None:
        self._database = database
        self._scrubber = scrubber

    async def fetch(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Read, each statement being a transaction by itself that may be repeated."""
        return await _run(begin(*args, **kwargs), self._rows)

    look = write_one = fetch

    async def _rows(self, call: Call) -> list[Any]:
        statement, scope, values, _ = call
        rows: list[Any] = []
        for text in statement.postgres:
            rows = await self._database.fetch(text.sql, *text.bind(scope, values, _as_array))
        return rows

    async def read(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Read one state of the database."""
        async with self._database.snapshot() as connection:
            return await run(connection, begin(*args, **kwargs))

    async def write(
        self, begin: Callable[_P, Operation[_T]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Write in a transaction, again if others were in its way."""
        return await self._database.transact(
            lambda connection: run(connection, begin(*args, **kwargs))
        )

    async def note(
        self, begin: Callable[_P, Operation[None]], *args: _P.args, **kwargs: _P.kwargs
    ) -> None:
        """Run a statement that is a transaction by itself."""
        await self.fetch(begin, *args, **kwargs)

    async def noted(self) -> None:
        """Return at once: notes are written when they return."""

    async def compute(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Work in a thread."""
        return await asyncio.to_thread(work, *args, **kwargs)

    async def remove(
        self,
        tables: Sequence[str],
        begin: Callable[_P, Operation[_T]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Write, count the removal, and write the tables anew soon."""

        async def work(connection: Connection) -> _T:
            removed = await run(connection, begin(*args, **kwargs))
            if removed:
                await connection.execute(scrubbing.COUNT)
            return removed

        removed = await self._database.transact(work)
        self._scrubber.begin(tables if removed else ())
        return removed
