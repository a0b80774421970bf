"""tools: tools and their schemas on PostgreSQL, and the shelf that makes the calls on them true.

after database, before store. What is damaged is never given: it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString

from holdfast.store import tool_shelf
from holdfast.store.pack import pack, unpack
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.scrubbing import Scrubber
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.tool_shelf import Stamp, StoredTool, ToolKey, ToolShelf

ADD: LiteralString = """
INSERT INTO holdfast.tools (
    workspace, username, server_name, tool_name, schema_hash, token_count, version, uses, used_at,
    updated_at, sha256, size, codec, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT DO NOTHING RETURNING number
"""

# The number is given anew, as if the tool had been removed and added: who asks for what is behind a
# revision gets it. The uses stay, for they are no part of what is replaced.
_REPLACE: LiteralString = """
UPDATE holdfast.tools SET number = DEFAULT, schema_hash = $6, token_count = $7, version = $8,
    updated_at = $9, sha256 = $10, size = $11, codec = $12, data = $13
WHERE workspace = $1 AND username = $2 AND server_name = $3 AND tool_name = $4 AND number = $5
RETURNING number
"""

_GET: LiteralString = """
SELECT * FROM holdfast.tools
WHERE workspace = $1 AND username = $2 AND server_name = $3 AND tool_name = $4
"""

_PAGE: LiteralString = """
SELECT * FROM holdfast.tools WHERE workspace = $1 AND username = $2 AND number > $3
ORDER BY number LIMIT $4
"""

ALL: LiteralString = """
SELECT * FROM holdfast.tools WHERE workspace = $1 AND username = $2 ORDER BY number
"""

_STAMP: LiteralString = """
SELECT count(*) AS tools, coalesce(max(number), 0) AS revision FROM holdfast.tools
WHERE workspace = $1 AND username = $2
"""

_USED: LiteralString = """
UPDATE holdfast.tools SET uses = uses + 1, used_at = $5
WHERE workspace = $1 AND username = $2 AND server_name = $3 AND tool_name = $4
"""

_FORGET: LiteralString = """
DELETE FROM holdfast.tools
WHERE workspace = $1 AND username = $2 AND server_name = $3 AND tool_name = $4
RETURNING number
"""

_REMOVE: LiteralString = """
DELETE FROM holdfast.tools
WHERE workspace = $1 AND username = $2 AND number = $3 AND sha256 = $4
"""

_AT_A_TIME = 16


class PostgresTools(ToolShelf):
    """Keeps tools in the database of the store."""

    def __init__(self, database: Database, clock: Callable[[], float], scrubber: Scrubber) -> None:
        self._database = database
        self._scrubber = scrubber
        self._clock = clock

    async def add(self, scope: Scope, tools: Sequence[StoredTool]) -> list[ToolKey]:
        """Keep tools that are not there."""
        # In the order of their names: two who add the same tools wait, and do not block each other.
        rows = sorted((tool.key, values(scope, tool)) for tool in tools)

        async def work(connection: Connection) -> list[ToolKey]:
            added = {key for key, row in rows if await connection.fetch(ADD, *row)}
            return [key for key in dict.fromkeys(tool.key for tool in tools) if key in added]

        return await self._database.transact(work)

    async def replace(self, scope: Scope, tool: StoredTool) -> bool:
        """Put a tool in the place of its earlier revision."""
        row = values(scope, tool)
        told = (*row[:4], tool.revision, *row[4:7], *row[9:])
        return bool(await self._database.fetch(_REPLACE, *told))

    async def get(self, scope: Scope, key: ToolKey) -> StoredTool | None:
        """A tool."""
        rows = await self._database.fetch(_GET, scope.workspace, scope.user, *key)
        return opened(rows[0]) if rows else None

    async def page(self, scope: Scope, after: int = 0, limit: int = 500) -> list[StoredTool]:
        """Tools behind a revision."""
        while True:  # a page of damaged tools alone would look like the last
            asked = (scope.workspace, scope.user, after, max(limit, 0))
            rows = await self._database.fetch(_PAGE, *asked)
            tools = [tool for tool in map(opened, rows) if tool is not None]
            if tools or not rows:
                return tools
            after = rows[-1]["number"]

    async def stamp(self, scope: Scope) -> Stamp:
        """How many tools there are, and the latest revision."""
        [row] = await self._database.fetch(_STAMP, scope.workspace, scope.user)
        return Stamp(row["tools"], row["revision"])

    async def used(self, scope: Scope, keys: Sequence[ToolKey]) -> None:
        """Note that tools were used."""
        now = self._clock()

        async def work(connection: Connection) -> None:
            for key in sorted(keys):
                await connection.fetch(_USED, scope.workspace, scope.user, *key, now)

        await self._database.transact(work)

    async def forget(self, scope: Scope, keys: Sequence[ToolKey]) -> int:
        """Remove tools without a trace."""

        async def work(connection: Connection) -> int:
            who = (scope.workspace, scope.user)
            return sum(
                [len(await connection.fetch(_FORGET, *who, *key)) for key in sorted(set(keys))]
            )

        removed = await self._database.transact(work)
        self._scrubber.begin(["tools"] if removed else [])
        return removed


def values(scope: Scope, tool: StoredTool) -> tuple[object, ...]:
    """A tool as the values of `ADD`."""
    tool_shelf.check(tool)
    content = tool_shelf.written(tool)
    packed = pack(content)
    return (
        *(scope.workspace, scope.user, *tool.key, tool.hash, tool.tokens, tool.version),
        *(tool.uses, tool.used_at, tool.updated_at),
        *(digest(content), len(content), packed.codec, packed.data),
    )


def opened(row: Any) -> StoredTool | None:
    """A row as a tool; None if it is not what was stored."""
    content = unpack(row["codec"], row["data"], size=row["size"], sha256=row["sha256"])
    if content is None:
        return None
    return StoredTool(
        server=row["server_name"],
        name=row["tool_name"],
        hash=row["schema_hash"],
        tokens=row["token_count"],
        revision=row["number"],
        **{name: row[name] for name in ("version", "uses", "used_at", "updated_at")},
        **tool_shelf.content_of(content),  # type: ignore[arg-type]
    )


async def unsound(connection: Connection, scope: Scope) -> list[Any]:
    """The rows of tools that are not what was stored."""
    rows = connection.cursor(ALL, scope.workspace, scope.user, prefetch=_AT_A_TIME)
    return [row async for row in rows if opened(row) is None]


async def remove(database: Database, scope: Scope, rows: Sequence[Any]) -> list[Damage]:
    """Remove damaged tools, unless they were kept anew since."""
    for row in rows:
        key = (scope.workspace, scope.user, row["number"], row["sha256"])
        await database.fetch(_REMOVE, *key)
    return [tool_shelf.damaged(row["sha256"]) for row in rows]
