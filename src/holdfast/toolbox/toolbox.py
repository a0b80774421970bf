"""Register tools, search them, list them in a directory, return their schemas, forget them.

A definition is pinned in the store when a tool is first registered. A later change by its server is
stored beside it until somebody accepts it. Slow work runs in a thread.
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
from holdfast.store.tool_store import StoredTool, ToolKey
from holdfast.toolbox.directory import BUDGET, DirectoryEntry, directory
from holdfast.toolbox.registration import (
    Registration,
    accept_offer,
    build_records,
    compare_definitions,
    record_offer,
)
from holdfast.toolbox.tool import read_valid_tools
from holdfast.toolbox.tool_cache import ScopeTools, ToolCache
from holdfast.toolbox.tool_search import ToolHit

_AT_ONCE = 500
"""Tools read and written per step: about 300 ms."""
_TRIES = 5
_MOST_SESSIONS = 1_000
_IN_SESSION, _IN_SCOPE = 1.0, 0.5
"""How much an earlier use of a tool counts: in this session, and anywhere in the scope."""


class Toolbox:
    """The tools of one user and workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        cache: ToolCache | None = None,
        *,
        embedder: Embedder | Literal["installed"] | None = "installed",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store.tools
        self._scope = scope
        self._cache = cache or ToolCache()
        self._embedder_choice = embedder
        self._clock = clock
        self._used: OrderedDict[str, set[ToolKey]] = OrderedDict()
        """Tools used per session, in this process."""

    @property
    def _embedder(self) -> Embedder | None:
        return open_embedder() if self._embedder_choice == "installed" else self._embedder_choice

    async def _now(self) -> ScopeTools:
        return await self._cache.of(self._store, self._scope)

    # --- take in ---------------------------------------------------------------------------------

    async def register(self, tools: Any, server: str = "") -> Registration:
        """Register definitions in any shape: new ones are pinned, known ones only compared.

        An invalid definition is listed in the result and does not stop the others.
        """
        definitions, refused = await asyncio.to_thread(read_valid_tools, tools, server)
        for _ in range(_TRIES):
            diff = compare_definitions(definitions, (await self._now()).by_key)
            now = self._clock()
            warned: list[str] = []
            conflict = False
            for start in range(0, len(diff.new), _AT_ONCE):
                batch = diff.new[start : start + _AT_ONCE]
                make = partial(build_records, batch, self._embedder, diff.renamed, now)
                records = await asyncio.to_thread(make)
                added = await self._store.add(self._scope, records)
                conflict |= len(added) != len(records)
                warned += [record.name for record in records if record.warnings]
            offers = [
                *(record_offer(stored, tool, now) for stored, tool in diff.changed),
                *(record_offer(stored, None, now) for stored in diff.unchanged),
            ]
            for offer in filter(None, offers):
                conflict |= not await self._store.replace(self._scope, offer)
            if not conflict:
                return Registration(
                    added=tuple(tool.name for tool in diff.new),
                    unchanged=tuple(stored.name for stored in diff.unchanged),
                    changed=tuple(tool.name for _, tool in diff.changed),
                    renamed=tuple(name for _, name in diff.renamed),
                    warned=tuple(warned),
                    refused=tuple(refused),
                )
        raise StoreConflictError(
            "other processes keep changing the same tools", fix="Register them once more."
        )

    async def accept(self, name: str, server: str | None = None) -> StoredTool:
        """Accept the current definition of a tool's server, and the new name of a renamed tool.

        Raises:
            ToolError: if there is no such tool, or nothing to accept.
        """
        for _ in range(_TRIES):
            stored = await self.tool(name, server)
            if not stored.offered and not stored.renamed_from:
                raise ToolError(
                    "this tool has no pending change to accept",
                    where=name[:100],
                    fix="See `holdfast tools list --changed`.",
                )
            record = await asyncio.to_thread(accept_offer, stored, self._embedder, self._clock())
            if await self._store.replace(self._scope, record):
                if stored.renamed_from:
                    await self._store.forget(self._scope, [(stored.server, stored.renamed_from)])
                return await self.tool(stored.name, stored.server)
        raise StoreConflictError("other processes keep changing the same tool", fix="Try again.")

    # --- look ------------------------------------------------------------------------------------

    async def search(self, query: str, k: int = 10, *, session: str = "") -> list[ToolHit]:
        """Return the tools a request may need, best first; fewer than `k` if scores drop."""
        scope_tools = await self._now()
        search = await scope_tools.search(self._embedder)
        used = dict.fromkeys(scope_tools.used, _IN_SCOPE)
        used |= dict.fromkeys(self._used.get(session or self._scope.session, ()), _IN_SESSION)
        return await asyncio.to_thread(search, query, k, used=used)

    async def directory(self, budget: int = BUDGET) -> str:
        """Return names and intents by server in `budget` tokens, the same for the same tools."""
        entries = [DirectoryEntry(tool.server, tool.name, tool.intent) for tool in await self.all()]
        return await asyncio.to_thread(directory, entries, budget)

    async def all(self, server: str | None = None) -> list[StoredTool]:
        """Return all tools, or those of one server, ordered by server and name."""
        tools = (await self._now()).tools
        return [tool for tool in tools if server in (None, tool.server)]

    async def tool(self, name: str, server: str | None = None) -> StoredTool:
        """Return a tool by name; the server's name may come before it, as in `github__search`.

        Raises:
            ToolError: if no tool has this name, or several servers have one.
        """
        scope_tools = await self._now()
        matches = [
            tool
            for (owner, own), tool in scope_tools.by_key.items()
            if server in (None, owner) and name in (own, f"{owner}__{own}", f"{owner}/{own}")
        ]
        exact = [tool for tool in matches if tool.name == name]
        if len(matches) > 1 and len(exact) == 1:
            matches = exact
        if len(matches) != 1:
            raise _no_such(name, [tool.server for tool in matches])
        return matches[0]

    async def schema(self, name: str, server: str | None = None) -> dict[str, Any]:
        """Return the pinned definition of a tool, in its original shape.

        Raises:
            ToolError: if no tool has this name, or several servers have one.
        """
        definition: dict[str, Any] = orjson.loads((await self.tool(name, server)).definition)
        return definition

    async def used(self, name: str, server: str | None = None, *, session: str = "") -> None:
        """Record the use of a tool, which ranks it higher from now on."""
        tool = await self.tool(name, server)
        session = session or self._scope.session
        self._used.setdefault(session, set()).add(tool.key)
        self._used.move_to_end(session)
        while len(self._used) > _MOST_SESSIONS:
            self._used.popitem(last=False)
        await self._store.used(self._scope, [tool.key])
        (await self._now()).count_use(tool.key)

    async def forget(
        self, name: str | None = None, server: str | None = None, *, preview: bool = False
    ) -> list[StoredTool]:
        """Delete a tool, a server's tools, or all, and return them; a preview deletes none.

        Raises:
            ToolError: if no tool has this name, or several servers have one.
        """
        matches = [await self.tool(name, server)] if name is not None else await self.all(server)
        if matches and not preview:
            await self._store.forget(self._scope, [tool.key for tool in matches])
        return matches


def _no_such(name: str, servers: list[str]) -> ToolError:
    if not servers:
        return ToolError(
            "no tool has this name",
            where=name[:100],
            fix="See `holdfast tools list`, or search for what it does.",
        )
    named = ", ".join(server[:40] or "(none)" for server in servers[:5])
    return ToolError(
        f"{len(servers)} servers have a tool of this name: {named}",
        where=name[:100],
        fix="Name the server too, as in server__tool.",
    )
