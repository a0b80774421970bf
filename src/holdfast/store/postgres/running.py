"""running: operations on PostgreSQL, statement by statement.

running: after database and scrubbing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from holdfast.store.postgres import text
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.scrubbing import Scrubber
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
    bound = statement.postgres
    if not bound.sql:
        return []
    if many is None:
        rows: list[Any] = await connection.fetch(bound.sql, *bound.bind(scope, values, _as_array))
        return rows
    if many:
        every = [bound.bind(scope, each, _as_array) for each in many]
        await connection.executemany(bound.sql, every)
    return []


def _as_array(values: Sequence[Any]) -> list[Any]:
    """Return a list for an array, inside of which the driver would encode text by itself."""
    return [text.encode(each).decode() if isinstance(each, str) else each for each in values]


class PostgresRunner:
    """Runs operations on the connections of a database."""

    def __init__(self, database: Database, scrubber: Scrubber) -> None:
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
        bound = statement.postgres
        return await self._database.fetch(bound.sql, *bound.bind(scope, values, _as_array))

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

    async def remove(
        self,
        tables: Sequence[str],
        begin: Callable[_P, Operation[_T]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Write, and write the tables anew soon if something was removed."""
        removed = await self.write(begin, *args, **kwargs)
        self._scrubber.begin(tables if removed else ())
        return removed
