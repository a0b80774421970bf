"""tools: tools and their schemas, in SQL, and the shelf that makes the calls on them true.

tools: after driver and writer, before store. What is damaged is never given: it is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import apsw

from holdfast.store import tool_shelf
from holdfast.store.pack import Packed, pack, unpack
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.sqlite.driver import Job
from holdfast.store.sqlite.writer import Readers, Writer
from holdfast.store.tool_shelf import Stamp, StoredTool, ToolKey, ToolShelf

_MINE = "workspace = ? AND owner = ?"
_NAMED = f"{_MINE} AND server_name = ? AND tool_name = ?"
_COLUMNS = (
    "number, server_name, tool_name, schema_hash, token_count, version, uses, used_at, updated_at,"
    " sha256, size, codec, CAST(data AS BLOB)"
)
_ADD = (
    "INSERT OR IGNORE INTO tools (workspace, owner, server_name, tool_name, schema_hash,"
    " token_count, version, uses, used_at, updated_at, sha256, size, codec, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_T = TypeVar("_T")
_Row = tuple[object, ...]


class SqliteTools(ToolShelf):
    """Keeps tools in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock

    async def _write(self, job: Job[_T]) -> _T:
        return await self._writer.submit(job)

    async def add(self, scope: Scope, tools: Sequence[StoredTool]) -> list[ToolKey]:
        """Keep tools that are not there."""
        rows = await asyncio.to_thread(lambda: [_row(scope, tool) for tool in tools])

        def job(db: apsw.Connection) -> list[ToolKey]:
            return [tool.key for tool, row in zip(tools, rows, strict=True) if _is_added(db, row)]

        return await self._write(job)

    async def replace(self, scope: Scope, tool: StoredTool) -> bool:
        """Put a tool in the place of its earlier revision."""
        row = _row(scope, tool)
        key = (*_owner(scope), *tool.key, tool.revision)

        def job(db: apsw.Connection) -> bool:
            uses = db.execute(
                f"SELECT uses, used_at FROM tools WHERE {_NAMED} AND number = ?",  # noqa: S608 - constants
                key,
            ).fetchone()
            if uses is None:
                return False
            db.execute(f"DELETE FROM tools WHERE {_NAMED} AND number = ?", key)  # noqa: S608 - constants
            return _is_added(db, (*row[:7], *uses, *row[9:]))

        return await self._write(job)

    async def get(self, scope: Scope, key: ToolKey) -> StoredTool | None:
        """A tool."""

        def job(db: apsw.Connection) -> StoredTool | None:
            row = db.execute(
                f"SELECT {_COLUMNS} FROM tools WHERE {_NAMED}",  # noqa: S608 - constants
                (*_owner(scope), *key),
            ).fetchone()
            return None if row is None else _opened(row)

        return await self._readers.read(job)

    async def page(self, scope: Scope, after: int = 0, limit: int = 500) -> list[StoredTool]:
        """Tools behind a revision."""
        most = max(limit, 0)

        def job(db: apsw.Connection) -> list[StoredTool]:
            last = after
            while True:  # a page of damaged tools alone would look like the last
                tools, last = page(db, scope, last, most)
                if tools or not last:
                    return tools

        return await self._readers.read(job)

    async def stamp(self, scope: Scope) -> Stamp:
        """How many tools there are, and the latest revision."""
        sql = f"SELECT count(*), coalesce(max(number), 0) FROM tools WHERE {_MINE}"  # noqa: S608 - constants

        def job(db: apsw.Connection) -> Stamp:
            rows: list[Any] = db.execute(sql, _owner(scope)).fetchall()
            return Stamp(*rows[0])

        return await self._readers.read(job)

    async def used(self, scope: Scope, keys: Sequence[ToolKey]) -> None:
        """Note that tools were used."""
        now = self._clock()
        sql = f"UPDATE tools SET uses = uses + 1, used_at = ? WHERE {_NAMED}"  # noqa: S608 - constants
        rows = [(now, *_owner(scope), *key) for key in keys]
        await self._write(lambda db: db.executemany(sql, rows).fetchall())

    async def forget(self, scope: Scope, keys: Sequence[ToolKey]) -> int:
        """Remove tools without a trace."""

        def job(db: apsw.Connection) -> int:
            removed = 0
            for key in dict.fromkeys(keys):
                db.execute(f"DELETE FROM tools WHERE {_NAMED}", (*_owner(scope), *key))  # noqa: S608 - constants
                removed += db.changes()
            return removed

        return await self._writer.remove(job)


def _owner(scope: Scope) -> tuple[str, str]:
    return scope.workspace, scope.user


def _row(scope: Scope, tool: StoredTool) -> _Row:
    tool_shelf.check(tool)
    content = tool_shelf.written(tool)
    packed: Packed = pack(content)
    return (
        *(*_owner(scope), *tool.key, tool.hash, tool.tokens, tool.version, tool.uses, tool.used_at),
        *(tool.updated_at, digest(content), len(content), packed.codec, packed.data),
    )


def _is_added(db: apsw.Connection, row: _Row) -> bool:
    db.execute(_ADD, row)
    return db.changes() == 1


def _opened(row: Sequence[Any]) -> StoredTool | None:
    """A row as a tool; None if it is not what was stored."""
    number, server, name, hash_, tokens, version, uses, used_at, updated_at = row[:9]
    sha256, size, codec, data = row[9:]
    content = unpack(codec, data, size=size, sha256=sha256)
    if content is None:
        return None
    return StoredTool(
        server=server,
        name=name,
        hash=hash_,
        tokens=tokens,
        version=version,
        uses=uses,
        used_at=used_at,
        updated_at=updated_at,
        revision=number,
        **tool_shelf.content_of(content),  # type: ignore[arg-type]
    )


def page(db: apsw.Connection, scope: Scope, after: int, limit: int) -> tuple[list[StoredTool], int]:
    """Whole tools behind a number, and the number to go on behind; 0 at the end."""
    rows: list[Any] = db.execute(
        f"SELECT {_COLUMNS} FROM tools WHERE {_MINE} AND number > ?"  # noqa: S608 - constants
        " ORDER BY number LIMIT ?",
        (*_owner(scope), after, limit),
    ).fetchall()
    tools = [tool for tool in map(_opened, rows) if tool is not None]
    return tools, rows[-1][0] if rows and len(rows) == limit else 0


def restore(db: apsw.Connection, scope: Scope, tool: StoredTool) -> bool:
    """Keep an exported tool unless there is one of its name; whether there was none."""
    return _is_added(db, _row(scope, tool))


def unsound(db: apsw.Connection, scope: Scope) -> dict[int, str]:
    """Tools that are not what was stored: their hashes by their numbers."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM tools WHERE {_MINE}", _owner(scope))  # noqa: S608 - constants
    return {row[0]: row[9] for row in rows if _opened(row) is None}


def remove_unsound(db: apsw.Connection, scope: Scope, unsound: Mapping[int, str]) -> None:
    """Remove damaged tools."""
    for number, sha256 in unsound.items():
        db.execute(
            f"DELETE FROM tools WHERE {_MINE} AND number = ? AND sha256 = ?",  # noqa: S608 - constants
            (*_owner(scope), number, sha256),
        )
