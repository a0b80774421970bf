"""The gateway: tools, prompts and resources of many servers, behind one.

gateway: after catalog, results and upstream. It answers from the cards of servers, which it keeps
in the store, so that a list waits for nobody; a server starts when it is called, and its card is
read anew then. A server that fails is told of in its own answers, and in no other's.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import mcp_types as types
import msgspec

from holdfast.engine import Holdfast
from holdfast.engine.tool_calls import ServerReport, report
from holdfast.errors import HoldfastError, StoreError, ToolServerError
from holdfast.surfaces.mcp.cards import Cards, ServerCard
from holdfast.surfaces.mcp.catalog import Catalog, Entry, Listing
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.host import AskingHost, Audience
from holdfast.surfaces.mcp.link import Changed
from holdfast.surfaces.mcp.pipe import MOST_BYTES, Way, way_to
from holdfast.surfaces.mcp.results import Called, Results, whole_characters
from holdfast.surfaces.mcp.upstream import CALL_RESULT, Upstream
from holdfast.toolbox.searching import search_over

FIRST_LIST_SECONDS = 10.0
"""How long the first list waits for servers that never ran here; later ones are told of."""
_REPORT_SECONDS = 30.0
_MOST_LINKS = 1_000


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a gateway behaves."""

    listing: Listing = "auto"
    listed_tokens: int = 5_000
    directory_tokens: int = 600
    window: int = 200_000
    """Of the models behind the hosts: by it results are judged to be long."""
    most_bytes: int = MOST_BYTES


class Gateway:
    """Many servers as one."""

    def __init__(
        self,
        engine: Holdfast,
        specs: Sequence[ServerSpec],
        options: GatewayOptions,
        *,
        way: Way | None = None,
    ) -> None:
        """`way` leads to a server; without one, as its entry says."""
        self.engine = engine
        self.options = options
        self.audience = Audience()
        way = way or partial(way_to, most_bytes=options.most_bytes)
        self.upstreams = {spec.name: Upstream(spec, self, way=way) for spec in specs}
        self._cards = Cards(engine.store, engine.scope)
        self._results = Results(engine, window=options.window)
        self._catalog: Catalog | None = None
        self.linked: OrderedDict[str, str] = OrderedDict()
        """Resources that results linked to, and whose results."""
        self._tallies: dict[str, ServerReport] = {}
        self._reported_at = time.monotonic()
        self._starting: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Read what was learnt of the servers the last time."""
        for upstream in self.upstreams.values():
            upstream.card = await self._cards.get(upstream.spec)

    async def close(self) -> None:
        """End all servers, and keep what their calls came to."""
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        closing = [upstream.close() for upstream in self.upstreams.values()]
        await asyncio.gather(*closing, return_exceptions=True)
        await self._report()

    # --- lists -----------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The tools of all servers, as far as they are known."""
        if self._catalog is None:
            options = self.options
            self._catalog = Catalog(
                [(each.spec, each.card) for each in self.upstreams.values() if each.card],
                listing=options.listing,
                listed_tokens=options.listed_tokens,
                directory_tokens=options.directory_tokens,
                is_alone=len(self.upstreams) == 1,
            )
        return self._catalog

    async def acquaint(self, host: AskingHost) -> None:
        """Start the servers of which nothing is known, and wait for them a little."""
        new = [each for each in self.upstreams.values() if each.card is None and each.is_startable]
        if not new:
            return
        tasks = [asyncio.ensure_future(self._try_start(upstream, host)) for upstream in new]
        for task in tasks:
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
        await asyncio.wait(tasks, timeout=FIRST_LIST_SECONDS)

    async def _try_start(self, upstream: Upstream, host: AskingHost) -> None:
        with suppress(HoldfastError):  # its state says so
            await upstream.started(host)

    async def find(self, query: str, limit: int) -> list[Entry]:
        """The tools that a request needs, the best first."""
        catalog = self.catalog
        tools = catalog.tools
        size = sum(len(tool.definition) for tool in tools)

        def search() -> list[tuple[str, str]]:
            hits = search_over(tools, self._embedder())(query, limit)
            return [(hit.server, hit.name) for hit in hits]

        return catalog.of(await self.engine.workers.off_loop(size, search))

    def _embedder(self) -> Any:
        from holdfast.models.embedding import open_embedder  # noqa: PLC0415 - numpy is slow to load

        return open_embedder()

    # --- calls -----------------------------------------------------------------------------------

    async def call(
        self,
        entry: Entry,
        params: types.CallToolRequestParams,
        arguments: Mapping[str, Any],
        host: AskingHost,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool of a server, and cite what is long of its result (004-54).

        Raises:
            ToolServerError: the server died, is not running, or took too long.
        """
        upstream = self.upstreams[entry.server]
        meta = dict(params.meta or {})
        for token in ("progress_token", "progressToken"):
            meta.pop(token, None)  # the next connection has its own
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(
                name=entry.own_name,
                arguments=dict(arguments),
                input_responses=params.input_responses,
                request_state=params.request_state,
                _meta=_carried(meta) or None,
            )
        )
        began = time.perf_counter()
        try:
            result = await upstream.call(request, CALL_RESULT, host, on_progress=host.progress)
        except ToolServerError:
            self._count(entry.server, failed=1, seconds=time.perf_counter() - began)
            raise
        if isinstance(result, types.InputRequiredResult):
            return result
        result = result.model_copy(update={"meta": _carried(result.meta or {}) or None})
        self._note_links(entry.server, result)
        called = Called(
            entry.name,
            arguments,
            entry.definition.get("outputSchema"),
            whole_characters(entry.definition.get("_meta")),
        )
        measured = await self._results.measured(result, called)
        self._count(
            entry.server,
            failed=int(result.is_error),
            cited=int(bool(measured.refs)),
            from_tokens=measured.from_tokens,
            to_tokens=measured.to_tokens,
            seconds=time.perf_counter() - began,
        )
        return measured.result

    def _note_links(self, server: str, result: types.CallToolResult) -> None:
        """Remember whom a linked resource is read from, though no list names it."""
        for block in result.content:
            if isinstance(block, types.ResourceLink):
                self.linked[str(block.uri)] = server
        while len(self.linked) > _MOST_LINKS:
            self.linked.popitem(last=False)

    # --- what servers tell -----------------------------------------------------------------------

    async def learnt(self, upstream: Upstream, learnt: ServerCard) -> None:
        """Take a server's lists into the catalog and into the store."""
        before = [self._catalog.listed()] if self._catalog is not None else []
        self._catalog = None
        with suppress(StoreError):
            await self._cards.put(upstream.spec, learnt)
        if before and before[0] != self.catalog.listed():
            await self.audience.changed("tools")

    async def changed(self, upstream: Upstream, what: Changed) -> None:
        """Hand on that a list has changed; of tools, `learnt` has told if that can be seen."""
        del upstream
        if what != "tools":
            await self.audience.changed(what)

    async def told(self, upstream: Upstream, notification: types.ServerNotification) -> None:
        """Hand on what a server tells of its resources."""
        del upstream
        if isinstance(notification, types.ResourceUpdatedNotification):
            await self.audience.updated(notification)

    # --- for whoever looks -----------------------------------------------------------------------

    def _count(self, server: str, **counts: float) -> None:
        """Add a call to what its server's calls came to."""
        sums = self._tallies.get(server, ServerReport(server=server))
        added = {name: getattr(sums, name) + value for name, value in counts.items()}
        self._tallies[server] = msgspec.structs.replace(sums, calls=sums.calls + 1, **added)
        if time.monotonic() - self._reported_at > _REPORT_SECONDS:
            self._reported_at = time.monotonic()
            task = asyncio.ensure_future(self._report())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _report(self) -> None:
        tallies, self._tallies = self._tallies, {}
        reports = [self._reported(each, tallies) for each in self.upstreams.values()]
        await report(self.engine.store, self.engine.scope, reports)

    def _reported(self, upstream: Upstream, tallies: Mapping[str, ServerReport]) -> ServerReport:
        name = upstream.spec.name
        entries = [each for each in self.catalog.entries.values() if each.server == name]
        return msgspec.structs.replace(
            tallies.get(name, ServerReport(server=name)),
            state=upstream.state,
            reason=upstream.reason,
            tools=len(entries),
            tool_tokens=sum(entry.tool.tokens for entry in entries),
            left_out=upstream.card.left_out if upstream.card else 0,
            flagged=tuple(f"{e.own_name}: {', '.join(e.flags)}" for e in entries if e.flags),
            at=time.time(),
        )


def _carried(meta: Mapping[str, Any]) -> Any:
    """What of a `_meta` is handed on; the protocol's own is of one connection, not of the next."""
    return {
        key: value
        for key, value in meta.items()
        if not key.startswith(("io.modelcontextprotocol/", "modelcontextprotocol.io/"))
    }
