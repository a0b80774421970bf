"""running: operations on SQLite, each as one job of the writer or of a reader.

running: after writer. All statements of an operation run in one thread, one behind the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import apsw

from holdfast.store.sqlite.writer import Readers, Writer
from holdfast.store.statements import Call, Operation

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
    text = statement.sqlite
    if not text.sql:
        return []
    if many is None:
        return db.execute(text.sql, text.bind(scope, values, _as_json)).fetchall()
    db.executemany(text.sql, [text.bind(scope, each, _as_json) for each in many])
    return []


def _as_json(values: Sequence[Any]) -> str:
    return json.dumps(list(values))


class SqliteRunner:
    """Runs operations in the threads of a store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

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

    write_one = write

    async def remove(
        self,
        tables: Sequence[str],  # noqa: ARG002 - the whole file is scrubbed
        begin: Callable[_P, Operation[_T]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Write, and overwrite soon what was removed."""
        return await self._writer.remove(lambda db: run(db, begin(*args, **kwargs)))
