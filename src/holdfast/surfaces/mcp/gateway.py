"""The gateway: tools, prompts and resources of many servers behind one.

Lists are answered from stored cards, so that no list waits; a server starts at its first call, and
its card is then read again. A tool's definition is pinned in the toolbox when it first appears. The
failure of one server affects only its own calls.
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
from holdfast.errors import HoldfastError, ToolServerError
from holdfast.settings import Settings
from holdfast.surfaces.mcp.cards import Cards, ServerCard
from holdfast.surfaces.mcp.catalog import Catalog, CatalogEntry, Listing, Pinned
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.host import Audience, ConnectedHost
from holdfast.surfaces.mcp.pipe import MOST_BYTES, Way, open_way
from holdfast.surfaces.mcp.results import GatewayCall, Results, max_uncited_characters
from holdfast.surfaces.mcp.server_starts import ServerStarts
from holdfast.surfaces.mcp.upstream import CALL_RESULT, McpUpstream
from holdfast.toolbox.tool_search import search_over

_REPORT_SECONDS = 30.0
_MOST_LINKS = 1_000


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a gateway behaves."""

    listing: Listing = "auto"
    listed_tokens: int = 5_000
    """With "auto", tools of more tokens are replaced by the directory: hosts send the whole list
    with every request."""
    directory_tokens: int = 600
    """Maximum tokens of the directory, which hosts send with every request too."""
    window: int = 200_000
    """Window of the models behind the hosts, by which results count as long; hosts do not say which
    model they use."""
    most_bytes: int = MOST_BYTES


def model_window(settings: Settings) -> int:
    """Return the window of the models behind the hosts, as far as the settings limit it."""
    return settings.request_limit or GatewayOptions().window


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
        """`way` connects to a server; without it, the server's entry decides."""
        self.engine = engine
        self.options = options
        self.audience = Audience()
        way = way or partial(open_way, most_bytes=options.most_bytes)
        self.upstreams = {spec.name: McpUpstream(spec, self, way=way) for spec in specs}
        self._cards = Cards(engine.store, engine.scope)
        self._results = Results(engine, window=options.window)
        self._catalog: Catalog | None = None
        self._pinned: Pinned = {}
        self.starts = ServerStarts(self.upstreams.values())
        self.linked: OrderedDict[str, str] = OrderedDict()
        """Resources that results link to, with the servers of these results."""
        self._call_sums: dict[str, ServerReport] = {}
        self._reported_at = time.monotonic()
        self._reporting: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Read the servers' cards and pinned definitions."""
        for upstream in self.upstreams.values():
            upstream.card = await self._cards.get(upstream.spec)
        await self.read_pins()

    async def close(self) -> None:
        """Stop all servers and record their call counts."""
        await self.starts.close()
        await asyncio.gather(*self._reporting, return_exceptions=True)
        closing = [upstream.close() for upstream in self.upstreams.values()]
        await asyncio.gather(*closing, return_exceptions=True)
        await self._report()

    # --- lists -----------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """Return the catalog of all servers with a card."""
        if self._catalog is None:
            options = self.options
            self._catalog = Catalog(
                [(each.spec, each.card) for each in self.upstreams.values()],
                self._pinned,
                listing=options.listing,
                listed_tokens=options.listed_tokens,
                directory_tokens=options.directory_tokens,
            )
        return self._catalog

    async def read_pins(self) -> None:
        """Read the pinned definitions again, since somebody may have accepted a change."""
        # without the store, the last pinned definitions stay in force
        with suppress(HoldfastError):
            tools = await self.engine.toolbox.all()
            pinned = {tool.key: tool for tool in tools if tool.server in self.upstreams}
            if pinned != self._pinned:
                self._pinned, self._catalog = pinned, None

    async def find(self, query: str, limit: int) -> list[CatalogEntry]:
        """Return the tools that a request needs, best first."""
        await self.read_pins()
        catalog = self.catalog
        tools = catalog.tools
        size = sum(len(tool.definition) for tool in tools)

        def search() -> list[tuple[str, str]]:
            hits = search_over(tools, self.engine.parts.tool_embedder)(query, limit)
            return [(hit.server, hit.name) for hit in hits]

        return catalog.of(await self.engine.workers.off_loop(size, search))

    # --- calls -----------------------------------------------------------------------------------

    async def call(
        self,
        entry: CatalogEntry,
        params: types.CallToolRequestParams,
        arguments: Mapping[str, Any],
        host: ConnectedHost,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool of a server, and cite the long parts of its result.

        Raises:
            ToolServerError: if the server died, is not running, or took too long.
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
                _meta=_forwarded_meta(meta) or None,
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
        result = result.model_copy(update={"meta": _forwarded_meta(result.meta or {}) or None})
        self._record_links(entry.server, result)
        tool_call = GatewayCall(
            entry.name,
            arguments,
            entry.definition.get("outputSchema"),
            max_uncited_characters(entry.definition.get("_meta")),
        )
        cited = await self._results.cite_result(result, tool_call)
        self._count(
            entry.server,
            failed=int(result.is_error),
            cited=int(bool(cited.refs)),
            from_tokens=cited.from_tokens,
            to_tokens=cited.to_tokens,
            seconds=time.perf_counter() - began,
        )
        return cited.result

    def _record_links(self, server: str, result: types.CallToolResult) -> None:
        """Record the server of a linked resource, which no list contains."""
        for block in result.content:
            if isinstance(block, types.ResourceLink):
                self.linked[str(block.uri)] = server
        while len(self.linked) > _MOST_LINKS:
            self.linked.popitem(last=False)

    # --- notifications of servers
    # ---------------------------------------------------------------------

    async def update_card(self, upstream: McpUpstream, card: ServerCard) -> None:
        """Update the catalog and the store with a server's lists; changed tools become pending."""
        before = None if self._catalog is None else self._catalog.definitions()
        former, upstream.card = upstream.card, card
        # works without the store, but lists must be read again next time
        with suppress(HoldfastError):
            await self._cards.put(upstream.spec, card)
            await self.engine.toolbox.register(card.tools, upstream.spec.name)
        await self.read_pins()
        self._catalog = None
        if before is not None and before != self.catalog.definitions():
            await self.audience.changed("tools")
        former = former or ServerCard()
        if former.prompts != card.prompts:
            await self.audience.changed("prompts")
        if (former.resources, former.templates) != (card.resources, card.templates):
            await self.audience.changed("resources")

    async def forward_notification(
        self, upstream: McpUpstream, notification: types.ServerNotification
    ) -> None:
        """Forward a server's notification about a resource."""
        del upstream
        if isinstance(notification, types.ResourceUpdatedNotification):
            await self.audience.updated(notification)

    # --- reports
    # --------------------------------------------------------------------------------------

    def _count(self, server: str, **counts: float) -> None:
        """Add a call to its server's counts."""
        sums = self._call_sums.get(server, ServerReport(server=server))
        added = {name: getattr(sums, name) + value for name, value in counts.items()}
        self._call_sums[server] = msgspec.structs.replace(sums, calls=sums.calls + 1, **added)
        if time.monotonic() - self._reported_at > _REPORT_SECONDS:
            self._reported_at = time.monotonic()
            task = asyncio.ensure_future(self._report())
            self._reporting.add(task)
            task.add_done_callback(self._reporting.discard)

    async def _report(self) -> None:
        tallies, self._call_sums = self._call_sums, {}
        await report(self.engine.store, self.engine.scope, self.reports(tallies))

    def reports(self, tallies: Mapping[str, ServerReport]) -> list[ServerReport]:
        """Return the state of each server with its call counts."""
        return [self._server_report(each, tallies) for each in self.upstreams.values()]

    def _server_report(
        self, upstream: McpUpstream, tallies: Mapping[str, ServerReport]
    ) -> ServerReport:
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
            changed=tuple(f"{e.own_name}: {e.change}" for e in entries if e.change),
            at=time.time(),
        )


def _forwarded_meta(meta: Mapping[str, Any]) -> Any:
    """Return the forwarded part of a `_meta`; the protocol's own keys belong to one connection."""
    return {
        key: value
        for key, value in meta.items()
        if key == types.LOG_LEVEL_META_KEY  # the host wants log messages of this request
        or not key.startswith(("io.modelcontextprotocol/", "modelcontextprotocol.io/"))
    }
