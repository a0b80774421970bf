"""Tools and their schemas. A damaged one counts as missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from holdfast.store import tool_store
from holdfast.store.operations import pages
from holdfast.store.pack import pack, unpack
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner, Values, load
from holdfast.store.tool_store import Stamp, StoredTool, ToolKey, ToolStore
from holdfast.store.transfer import PAGE, Page, ToolLine

TABLES = ("tools",)
"""Tables whose removed rows are overwritten."""

_sql = load("tools")


class SqlToolStore(ToolStore):
    """Tools in a database."""

    def __init__(self, runner: Runner, clock: Callable[[], float]) -> None:
        self._runner = runner
        self._clock = clock

    async def add(self, scope: Scope, tools: Sequence[StoredTool]) -> list[ToolKey]:
        """Store new tools; return their keys."""
        rows = await self._runner.compute(lambda: [_values(tool) for tool in tools])

        def work() -> Operation[list[ToolKey]]:
            yield _sql.lock_to_add(scope)
            added = []
            for tool, values in zip(tools, rows, strict=True):
                if (yield _sql.add(scope, **values)):
                    added.append(tool.key)
            return added

        return await self._runner.write(work)

    async def replace(self, scope: Scope, tool: StoredTool) -> bool:
        """Put a tool in the place of its earlier revision; return whether that was there."""
        values = _values(tool)
        del values["uses"], values["used_at"]

        def work() -> Operation[bool]:
            return bool((yield _sql.replace(scope, revision=tool.revision, **values)))

        return await self._runner.write_one(work)

    async def get(self, scope: Scope, key: ToolKey) -> StoredTool | None:
        """Return a tool."""

        def work() -> Operation[StoredTool | None]:
            rows = yield _sql.get(scope, server=key[0], tool=key[1])
            return _tool(rows[0]) if rows else None

        return await self._runner.fetch(work)

    async def page(self, scope: Scope, after: int = 0, limit: int = 500) -> list[StoredTool]:
        """Return the tools after a revision."""

        def work() -> Operation[list[StoredTool]]:
            last = after
            while True:  # a page of damaged tools alone would look like the last
                rows = yield _sql.page(scope, after=last, limit=max(limit, 0))
                tools = [tool for tool in map(_tool, rows) if tool is not None]
                if tools or not rows:
                    return tools
                last = rows[-1][0]

        return await self._runner.fetch(work)

    async def stamp(self, scope: Scope) -> Stamp:
        """Return how many tools there are, and the latest revision."""

        def work() -> Operation[Stamp]:
            return Stamp(*(yield _sql.stamp(scope))[0])

        return await self._runner.fetch(work)

    async def used(self, scope: Scope, keys: Sequence[ToolKey]) -> None:
        """Note that tools were used."""
        now = self._clock()

        def work() -> Operation[None]:
            yield _sql.note_use.many(
                scope,
                ({"server": server, "tool": tool, "now": now} for server, tool in _ordered(keys)),
            )

        await self._runner.write(work)

    async def forget(self, scope: Scope, keys: Sequence[ToolKey]) -> int:
        """Remove tools without a trace; return how many there were."""

        def work() -> Operation[int]:
            removed = 0
            for server, tool in _ordered(set(keys)):
                removed += len((yield _sql.forget(scope, server=server, tool=tool)))
            return removed

        return await self._runner.remove(TABLES, work)


def _ordered(keys: Iterable[ToolKey]) -> list[ToolKey]:
    """Return keys in one order for all: two who change the same tools do not block each other."""
    return sorted(keys)


def _values(tool: StoredTool) -> Values:
    tool_store.check(tool)
    content = tool_store.written(tool)
    packed = pack(content)
    return {
        "server": tool.server,
        "tool": tool.name,
        "hash": tool.hash,
        "tokens": tool.tokens,
        "version": tool.version,
        "uses": tool.uses,
        "used_at": tool.used_at,
        "updated_at": tool.updated_at,
        "sha256": digest(content),
        "size": len(content),
        "codec": packed.codec,
        "data": packed.data,
    }


def _tool(row: Row) -> StoredTool | None:
    """Return the tool of a row; None if it is damaged."""
    number, server, name, hash_, tokens, version, uses, used_at, updated_at, *stored = row
    sha256, size, codec, data = stored
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
        **tool_store.content_of(content),  # type: ignore[arg-type]
    )


def restore(scope: Scope, tool: StoredTool) -> Operation[bool]:
    """Write an exported tool unless there is one of its name; return whether there was none."""
    return bool((yield _sql.add(scope, **_values(tool))))


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the tools after a revision; damaged ones are left out."""
    rows = yield _sql.page(scope, after=after or 0, limit=PAGE)
    tools = [tool for tool in map(_tool, rows) if tool is not None]
    exported = [ToolLine(msgspec.structs.replace(tool, revision=0)) for tool in tools]
    return [*exported], pages.last_key(rows)


async def verify(runner: Runner, scope: Scope) -> list[Damage]:
    """Remove damaged tools, unless they were replaced meanwhile; return their damages."""
    rows = await pages.damaged_rows(runner, scope, 0, _damaged, _remove_damaged)
    return [tool_store.damaged(row[9]) for row in rows]


def _damaged(scope: Scope, after: int) -> Operation[pages.RowPage]:
    rows = yield _sql.page(scope, after=after, limit=PAGE)
    return [row for row in rows if _tool(row) is None], pages.last_key(rows)


def _remove_damaged(scope: Scope, rows: Sequence[Row]) -> Operation[None]:
    yield _sql.remove_damaged.many(scope, ({"number": row[0], "sha256": row[9]} for row in rows))
