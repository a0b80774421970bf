"""A cache of the tools of recently used scopes and of the search over them.

Other processes may write to the same store: before each use, one small query compares the stamp of
the cached tools. An index of 10,000 tools takes half a second to build, which is done in a thread.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.models.protocol import Embedder
from holdfast.store import Scope
from holdfast.store.tool_store import Stamp, StoredTool, ToolKey, ToolStore
from holdfast.toolbox.index import ToolIndex
from holdfast.toolbox.registration import restore_tool
from holdfast.toolbox.tool_features import encode_features, index_maker
from holdfast.toolbox.tool_search import ToolSearch

_MOST_SCOPES = 32
_PAGE = 500
_ON_LOOP = 50
"""Tools whose index is built on the event loop: 5 ms."""


class ScopeTools:
    """The tools of one scope at one time."""

    def __init__(self, stamp: Stamp, tools: Sequence[StoredTool]) -> None:
        self.stamp = stamp
        self.by_key = {tool.key: tool for tool in sorted(tools, key=lambda tool: tool.key)}
        self.used = {key for key, tool in self.by_key.items() if tool.uses}
        """Tools that were ever used."""
        self._searches: dict[str, ToolSearch] = {}

    @property
    def tools(self) -> list[StoredTool]:
        """Return the tools ordered by server and name."""
        return list(self.by_key.values())

    def count_use(self, key: ToolKey) -> None:
        """Count a use. The stamp does not change, so uses in other processes are counted later."""
        if tool := self.by_key.get(key):
            self.by_key[key] = msgspec.structs.replace(tool, uses=tool.uses + 1)
            self.used.add(key)

    async def search(self, embedder: Embedder | None) -> ToolSearch:
        """Return the search over the tools, with the vectors of an embedder."""
        maker = index_maker(embedder)
        if maker not in self._searches:
            build = partial(_build_search, self.tools, embedder)
            is_long = len(self.by_key) > _ON_LOOP
            self._searches[maker] = await asyncio.to_thread(build) if is_long else build()
        return self._searches[maker]


class ToolCache:
    """The tools of recently used scopes."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[tuple[str, str], ScopeTools] = OrderedDict()

    async def of(self, store: ToolStore, scope: Scope) -> ScopeTools:
        """Return the tools of a scope as they are now."""
        key = (scope.workspace, scope.user)
        stamp = await store.stamp(scope)
        scope_tools = self._scopes.get(key)
        if scope_tools is None or scope_tools.stamp != stamp:
            scope_tools = self._scopes[key] = ScopeTools(stamp, await _all(store, scope))
        self._scopes.move_to_end(key)
        while len(self._scopes) > _MOST_SCOPES:
            self._scopes.popitem(last=False)
        return scope_tools


async def _all(store: ToolStore, scope: Scope) -> list[StoredTool]:
    tools: dict[ToolKey, StoredTool] = {}
    after = 0
    while page := await store.page(scope, after, _PAGE):
        tools |= {tool.key: tool for tool in page}
        after = page[-1].revision
    return list(tools.values())


def _build_search(tools: Sequence[StoredTool], embedder: Embedder | None) -> ToolSearch:
    """Return the search; features that another indexer extracted are extracted again."""
    maker = index_maker(embedder)
    outdated = [n for n, tool in enumerate(tools) if tool.maker != maker]
    updated = dict(
        zip(
            outdated,
            encode_features([restore_tool(tools[n]) for n in outdated], embedder),
            strict=True,
        )
    )
    features = [updated.get(n, tool.read) for n, tool in enumerate(tools)]
    width = 0 if embedder is None else embedder.dimensions
    return ToolSearch(ToolIndex([tool.key for tool in tools], features, width), embedder)
