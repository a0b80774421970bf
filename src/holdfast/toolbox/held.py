"""What is held in memory of scopes that were asked lately: their tools, and the search over them.

held: after pinning and searching. Others may write into the same store: before anything held is
used, its stamp is compared, which is one small question. Building an index of 10,000 tools takes
half a second, and is done beside the event loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.models.protocol import Embedder
from holdfast.store import Scope
from holdfast.store.tool_shelf import Stamp, StoredTool, ToolKey, ToolShelf
from holdfast.toolbox.index import ToolIndex
from holdfast.toolbox.pinning import tool_of
from holdfast.toolbox.reading import maker_of, read_all
from holdfast.toolbox.searching import Search

_MOST_SCOPES = 32
_PAGE = 500
_ON_LOOP = 50
"""Tools whose index is built at once: 5 ms."""


class HeldTools:
    """The tools of one scope as they were at one time."""

    def __init__(self, stamp: Stamp, tools: Sequence[StoredTool]) -> None:
        self.stamp = stamp
        self.by_key = {tool.key: tool for tool in sorted(tools, key=lambda tool: tool.key)}
        self.used = {key for key, tool in self.by_key.items() if tool.uses}
        """Those that were ever used."""
        self._searches: dict[str, Search] = {}

    @property
    def tools(self) -> list[StoredTool]:
        """In the order of servers and names."""
        return list(self.by_key.values())

    def count_use(self, key: ToolKey) -> None:
        """Count a use here too: no stamp tells it, and those of other processes come later."""
        if tool := self.by_key.get(key):
            self.by_key[key] = msgspec.structs.replace(tool, uses=tool.uses + 1)
            self.used.add(key)

    async def search(self, embedder: Embedder | None) -> Search:
        """The search over them, with the vectors of an embedder."""
        maker = maker_of(embedder)
        if maker not in self._searches:
            build = partial(_built, self.tools, embedder)
            is_long = len(self.by_key) > _ON_LOOP
            self._searches[maker] = await asyncio.to_thread(build) if is_long else build()
        return self._searches[maker]


class Held:
    """The scopes that were asked lately."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[tuple[str, str], HeldTools] = OrderedDict()

    async def of(self, shelf: ToolShelf, scope: Scope) -> HeldTools:
        """The tools of a scope as they are now."""
        key = (scope.workspace, scope.user)
        stamp = await shelf.stamp(scope)
        held = self._scopes.get(key)
        if held is None or held.stamp != stamp:
            held = self._scopes[key] = HeldTools(stamp, await _all(shelf, scope))
        self._scopes.move_to_end(key)
        while len(self._scopes) > _MOST_SCOPES:
            self._scopes.popitem(last=False)
        return held


async def _all(shelf: ToolShelf, scope: Scope) -> list[StoredTool]:
    tools: dict[ToolKey, StoredTool] = {}
    after = 0
    while page := await shelf.page(scope, after, _PAGE):
        tools |= {tool.key: tool for tool in page}
        after = page[-1].revision
    return list(tools.values())


def _built(tools: Sequence[StoredTool], embedder: Embedder | None) -> Search:
    """The search; what another maker has read is read again."""
    maker = maker_of(embedder)
    others = [n for n, tool in enumerate(tools) if tool.maker != maker]
    again = dict(zip(others, read_all([tool_of(tools[n]) for n in others], embedder), strict=True))
    reads = [again.get(n, tool.read) for n, tool in enumerate(tools)]
    width = 0 if embedder is None else embedder.dimensions
    return Search(ToolIndex([tool.key for tool in tools], reads, width), embedder)
