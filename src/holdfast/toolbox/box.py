"""Toolbox: register tools, find them, show their directory, open a schema, forget them.

box: the last of toolbox; the engine has one for its scope. Definitions are pinned in the store when
they first come: what a server says of them later waits beside them until it is accepted. What takes
long is done beside the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import orjson

from holdfast.errors import StoreConflictError, ToolError
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import Embedder
from holdfast.store import Scope, Store
from holdfast.store.tool_shelf import StoredTool, ToolKey
from holdfast.toolbox.directory import BUDGET, Listed, directory
from holdfast.toolbox.held import Held, HeldTools
from holdfast.toolbox.pinning import Registered, accepted, offering, pinned_records, sort
from holdfast.toolbox.searching import Hit
from holdfast.toolbox.tool import sorted_out

_AT_ONCE = 500
"""Tools that are read and written together: some 300 ms."""
_TRIES = 5
_MOST_SESSIONS = 1_000
_IN_SESSION, _IN_SCOPE = 1.0, 0.5
"""How much it counts that a tool was used before: here, or anywhere in the scope."""


class Toolbox:
    """The tools of one user and workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        held: Held | None = None,
        *,
        embedder: Embedder | Literal["installed"] | None = "installed",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._shelf = store.tools
        self._scope = scope
        self._held = held or Held()
        self._given = embedder
        self._clock = clock
        self._used: OrderedDict[str, set[ToolKey]] = OrderedDict()
        """Tools that were used in sessions of this process."""

    @property
    def _embedder(self) -> Embedder | None:
        return open_embedder() if self._given == "installed" else self._given

    async def _now(self) -> HeldTools:
        return await self._held.of(self._shelf, self._scope)

    # --- take in ---------------------------------------------------------------------------------

    async def register(self, tools: Any, server: str = "") -> Registered:
        """Take in definitions in any shape: new ones are pinned, others only compared.

        What cannot be read is refused and told, and stops no other.
        """
        given, refused = await asyncio.to_thread(sorted_out, tools, server)
        for _ in range(_TRIES):
            sorting = sort(given, (await self._now()).by_key)
            now = self._clock()
            warned: list[str] = []
            conflict = False
            for start in range(0, len(sorting.new), _AT_ONCE):
                part = sorting.new[start : start + _AT_ONCE]
                make = partial(pinned_records, part, self._embedder, sorting.renamed, now)
                records = await asyncio.to_thread(make)
                added = await self._shelf.add(self._scope, records)
                conflict |= len(added) != len(records)
                warned += [record.name for record in records if record.warnings]
            offers = [
                *(offering(stored, tool, now) for stored, tool in sorting.changed),
                *(offering(stored, None, now) for stored in sorting.unchanged),
            ]
            for offer in filter(None, offers):
                conflict |= not await self._shelf.replace(self._scope, offer)
            if not conflict:
                return Registered(
                    added=tuple(tool.name for tool in sorting.new),
                    unchanged=tuple(stored.name for stored in sorting.unchanged),
                    changed=tuple(tool.name for _, tool in sorting.changed),
                    renamed=tuple(name for _, name in sorting.renamed),
                    warned=tuple(warned),
                    refused=tuple(refused),
                )
        raise StoreConflictError(
            "others change the same tools all the time", fix="Register them once more."
        )

    async def accept(self, name: str, server: str | None = None) -> StoredTool:
        """Take over what a server says of a tool now; and of one that was renamed, the new name.

        Raises:
            ToolError: there is no such tool, or nothing to accept.
        """
        for _ in range(_TRIES):
            stored = await self.tool(name, server)
            if not stored.offered and not stored.renamed_from:
                raise ToolError(
                    "nothing of this tool waits to be accepted",
                    where=name[:100],
                    fix="See `holdfast tools list --changed`.",
                )
            record = await asyncio.to_thread(accepted, stored, self._embedder, self._clock())
            if await self._shelf.replace(self._scope, record):
                if stored.renamed_from:
                    await self._shelf.forget(self._scope, [(stored.server, stored.renamed_from)])
                return await self.tool(stored.name, stored.server)
        raise StoreConflictError("others change the same tool all the time", fix="Try again.")

    # --- look ------------------------------------------------------------------------------------

    async def search(self, query: str, k: int = 10, *, session: str = "") -> list[Hit]:
        """The tools that a request may need, the best first; fewer than `k` if scores fall off."""
        held = await self._now()
        search = await held.search(self._embedder)
        used = dict.fromkeys(held.used, _IN_SCOPE)
        used |= dict.fromkeys(self._used.get(session or self._scope.session, ()), _IN_SESSION)
        return await asyncio.to_thread(search, query, k, used=used)

    async def directory(self, budget: int = BUDGET) -> str:
        """Names and intents by server, in at most so many tokens, the same for the same tools."""
        listed = [Listed(tool.server, tool.name, tool.intent) for tool in await self.all()]
        return await asyncio.to_thread(directory, listed, budget)

    async def all(self, server: str | None = None) -> list[StoredTool]:
        """All tools, or those of a server, in the order of servers and names."""
        tools = (await self._now()).tools
        return [tool for tool in tools if server in (None, tool.server)]

    async def tool(self, name: str, server: str | None = None) -> StoredTool:
        """A tool by its name; a server's may stand before it, as in `github__search`.

        Raises:
            ToolError: there is none of this name, or servers have several.
        """
        held = await self._now()
        meant = [
            tool
            for (owner, own), tool in held.by_key.items()
            if server in (None, owner) and name in (own, f"{owner}__{own}", f"{owner}/{own}")
        ]
        exact = [tool for tool in meant if tool.name == name]
        if len(meant) > 1 and len(exact) == 1:
            meant = exact
        if len(meant) != 1:
            raise _no_such(name, [tool.server for tool in meant])
        return meant[0]

    async def schema(self, name: str, server: str | None = None) -> dict[str, Any]:
        """The definition of a tool as it was pinned, in the shape that it came in.

        Raises:
            ToolError: there is none of this name, or servers have several.
        """
        definition: dict[str, Any] = orjson.loads((await self.tool(name, server)).definition)
        return definition

    async def used(self, name: str, server: str | None = None, *, session: str = "") -> None:
        """Note that a tool was used: it is found more readily from now on."""
        tool = await self.tool(name, server)
        session = session or self._scope.session
        self._used.setdefault(session, set()).add(tool.key)
        self._used.move_to_end(session)
        while len(self._used) > _MOST_SESSIONS:
            self._used.popitem(last=False)
        await self._shelf.used(self._scope, [tool.key])
        (await self._now()).count_use(tool.key)

    async def forget(
        self, name: str | None = None, server: str | None = None, *, preview: bool = False
    ) -> list[StoredTool]:
        """Forget a tool, those of a server, or all, without a trace; which. Preview: they stay.

        Raises:
            ToolError: there is none of this name, or servers have several.
        """
        meant = [await self.tool(name, server)] if name is not None else await self.all(server)
        if meant and not preview:
            await self._shelf.forget(self._scope, [tool.key for tool in meant])
        return meant


def _no_such(name: str, servers: list[str]) -> ToolError:
    if not servers:
        return ToolError(
            "there is no tool of this name",
            where=name[:100],
            fix="See `holdfast tools list`, or search for what it does.",
        )
    named = ", ".join(server[:40] or "(none)" for server in servers[:5])
    return ToolError(
        f"{len(servers)} servers have a tool of this name: {named}",
        where=name[:100],
        fix="Name the server too, as in server__tool.",
    )
