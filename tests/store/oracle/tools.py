"""The model of stored tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import msgspec

from holdfast.store import tool_store
from holdfast.store.scope import Scope
from holdfast.store.tool_store import Stamp, StoredTool, ToolKey, ToolStore
from holdfast.store.transfer import ToolLine


class ModelTools(ToolStore):
    """Keeps tools in dictionaries."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_owner: dict[tuple[str, str], dict[ToolKey, StoredTool]] = {}
        self._revisions = count(1)

    def _of(self, scope: Scope) -> dict[ToolKey, StoredTool]:
        """A user's tools, in the order of their revisions."""
        return self._by_owner.setdefault((scope.workspace, scope.user), {})

    def _keep(self, scope: Scope, tool: StoredTool) -> None:
        tools = self._of(scope)
        tools.pop(tool.key, None)  # so that it is the newest
        tools[tool.key] = msgspec.structs.replace(tool, revision=next(self._revisions))

    async def add(self, scope: Scope, tools: Sequence[StoredTool]) -> list[ToolKey]:
        """Keep tools that are not there."""
        for tool in tools:
            tool_store.check(tool)
        new = {tool.key: tool for tool in reversed(tools) if tool.key not in self._of(scope)}
        for tool in reversed(new.values()):
            self._keep(scope, tool)
        return list(reversed(new))

    async def replace(self, scope: Scope, tool: StoredTool) -> bool:
        """Put a tool in the place of its earlier revision."""
        tool_store.check(tool)
        earlier = self._of(scope).get(tool.key)
        if earlier is None or earlier.revision != tool.revision:
            return False
        self._keep(scope, msgspec.structs.replace(tool, uses=earlier.uses, used_at=earlier.used_at))
        return True

    async def get(self, scope: Scope, key: ToolKey) -> StoredTool | None:
        """A tool."""
        return self._of(scope).get(key)

    async def page(self, scope: Scope, after: int = 0, limit: int = 500) -> list[StoredTool]:
        """Return tools after a revision."""
        later = [tool for tool in self._of(scope).values() if tool.revision > after]
        return later[: max(limit, 0)]

    async def stamp(self, scope: Scope) -> Stamp:
        """How many tools there are, and the latest revision."""
        tools = self._of(scope)
        last = next(reversed(tools.values()), None)
        return Stamp(len(tools), 0 if last is None else last.revision)

    async def used(self, scope: Scope, keys: Sequence[ToolKey]) -> None:
        """Note that tools were used."""
        tools, now = self._of(scope), self._clock()
        for key in keys:
            if tool := tools.get(key):
                tools[key] = msgspec.structs.replace(tool, uses=tool.uses + 1, used_at=now)

    async def forget(self, scope: Scope, keys: Sequence[ToolKey]) -> int:
        """Remove tools without a trace."""
        return sum(self._of(scope).pop(key, None) is not None for key in dict.fromkeys(keys))

    def erase(self, scope: Scope) -> int:
        """Remove all tools of a user and workspace; return how many there were."""
        return len(self._by_owner.pop((scope.workspace, scope.user), {}))

    def lines(self, scope: Scope) -> Iterator[ToolLine]:
        """A user's tools, to be exported."""
        for tool in self._of(scope).values():
            yield ToolLine(msgspec.structs.replace(tool, revision=0))

    def restore(self, scope: Scope, line: ToolLine) -> bool:
        """Put an exported tool on the shelf; whether it was not there."""
        is_new = line.tool.key not in self._of(scope)
        if is_new:
            self._keep(scope, line.tool)
        return is_new
