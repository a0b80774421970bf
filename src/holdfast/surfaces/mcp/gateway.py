"""The gateway: tools, prompts and resources of many servers, behind one.

gateway: after catalog, results and acquaintance. It answers from the cards of servers, which it
keeps in the store, so that a list waits for nobody; a server starts when it is called, and its card
is read anew then. What a card says of a tool is pinned in the toolbox when it first comes, and that
holds until another is accepted. A server that fails is told of in its own answers alone.
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
from holdfast.surfaces.mcp.acquaintance import Acquaintance
from holdfast.surfaces.mcp.cards import Cards, ServerCard
from holdfast.surfaces.mcp.catalog import Catalog, Entry, Listing, Pinned
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.host import AskingHost, Audience
from holdfast.surfaces.mcp.pipe import MOST_BYTES, Way, way_to
from holdfast.surfaces.mcp.results import Called, Results, whole_characters
from holdfast.surfaces.mcp.upstream import CALL_RESULT, Upstream
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


def window_of(settings: Settings) -> int:
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
        """`way` leads to a server; without one, as its entry says."""
        self.engine = engine
        self.options = options
        self.audience = Audience()
        way = way or partial(way_to, most_bytes=options.most_bytes)
        self.upstreams = {spec.name: Upstream(spec, self, way=way) for spec in specs}
        self._cards = Cards(engine.store, engine.scope)
        self._results = Results(engine, window=options.window)
        self._catalog: Catalog | None = None
        self._pinned: Pinned = {}
        self.acquaintance = Acquaintance(self.upstreams.values())
        self.linked: OrderedDict[str, str] = OrderedDict()
        """Resources that results linked to, and whose results."""
        self._tallies: dict[str, ServerReport] = {}
        self._reported_at = time.monotonic()
        self._reporting: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Read what was learnt of the servers the last time."""
        for upstream in self.upstreams.values():
            upstream.card = await self._cards.get(upstream.spec)
        await self.read_pins()

    async def close(self) -> None:
        """End all servers, and keep what their calls came to."""
        await self.acquaintance.close()
        await asyncio.gather(*self._reporting, return_exceptions=True)
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
                [(each.spec, each.card) for each in self.upstreams.values()],
                self._pinned,
                listing=options.listing,
                listed_tokens=options.listed_tokens,
                directory_tokens=options.directory_tokens,
            )
        return self._catalog

    async def read_pins(self) -> None:
        """Read which definitions hold: somebody may have accepted another since."""
        with suppress(HoldfastError):  # without the store, what was read last holds
            tools = await self.engine.toolbox.all()
            pinned = {tool.key: tool for tool in tools if tool.server in self.upstreams}
            if pinned != self._pinned:
                self._pinned, self._catalog = pinned, None

    async def find(self, query: str, limit: int) -> list[Entry]:
        """The tools that a request needs, the best first."""
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
        """Take a server's lists into the catalog and into the store, and its word as an offer."""
        before = None if self._catalog is None else self._catalog.listed()
        former, upstream.card = upstream.card, learnt
        with suppress(HoldfastError):  # it works without the store too, but must be asked again
            await self._cards.put(upstream.spec, learnt)
            await self.engine.toolbox.register(learnt.tools, upstream.spec.name)
        await self.read_pins()
        self._catalog = None
        if before is not None and before != self.catalog.listed():
            await self.audience.changed("tools")
        former = former or ServerCard()
        if former.prompts != learnt.prompts:
            await self.audience.changed("prompts")
        if (former.resources, former.templates) != (learnt.resources, learnt.templates):
            await self.audience.changed("resources")

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
            self._reporting.add(task)
            task.add_done_callback(self._reporting.discard)

    async def _report(self) -> None:
        tallies, self._tallies = self._tallies, {}
        await report(self.engine.store, self.engine.scope, self.reports(tallies))

    def reports(self, tallies: Mapping[str, ServerReport]) -> list[ServerReport]:
        """How each server is, with what its calls came to."""
        return [self._reported(each, tallies) for each in self.upstreams.values()]

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
            changed=tuple(f"{e.own_name}: {e.change}" for e in entries if e.change),
            at=time.time(),
        )


def _carried(meta: Mapping[str, Any]) -> Any:
    """What of a `_meta` is handed on; the protocol's own is of one connection, not of the next."""
    return {
        key: value
        for key, value in meta.items()
        if key == types.LOG_LEVEL_META_KEY  # whoever asks wants to hear of this request
        or not key.startswith(("io.modelcontextprotocol/", "modelcontextprotocol.io/"))
    }
