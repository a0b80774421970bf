"""Try a server for the command line: start it, list it, call it once, stop it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import mcp_types as types
import msgspec
from mcp import MCPError

from holdfast.engine import Holdfast
from holdfast.engine.tool_calls import ServerReport, report
from holdfast.errors import ToolServerError
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.surfaces.mcp.cards import ServerCard
from holdfast.surfaces.mcp.catalog import Catalog, CatalogEntry
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import model_window
from holdfast.surfaces.mcp.pipe import open_way
from holdfast.surfaces.mcp.results import GatewayCall, Results, max_uncited_characters
from holdfast.surfaces.mcp.upstream import CALL_RESULT, McpUpstream


class TrialTool(msgspec.Struct, frozen=True):
    """A tool as its server defines it."""

    name: str
    tokens: int
    flags: tuple[str, ...]
    description: str


class ServerTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A server that started."""

    version: str
    protocol: str
    seconds: float
    tools: tuple[TrialTool, ...]
    prompts: int
    resources: int
    left_out: int


class CallTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call."""

    text: str
    result: Any
    """The result as the protocol writes it."""
    is_error: bool


class _NoHost:
    """No host: requests to it are refused, and notifications dropped."""

    identity = "command line"
    capabilities: types.ClientCapabilities | None = None
    is_modern = True

    async def ask(self, request: types.ServerRequest, result: type[Any]) -> Any:
        del request, result
        return types.ErrorData(code=types.INVALID_REQUEST, message="Nobody is here to be asked.")

    async def tell(self, notification: types.ServerNotification) -> None:
        del notification

    async def update_card(self, upstream: McpUpstream, card: ServerCard) -> None:
        upstream.card = card

    async def forward_notification(
        self, upstream: McpUpstream, notification: types.ServerNotification
    ) -> None:
        del upstream, notification


@asynccontextmanager
async def _run_server(spec: ServerSpec, hear: Callable[[str], None]) -> AsyncIterator[McpUpstream]:
    way = partial(open_way, hear=hear)
    upstream = McpUpstream(spec, _NoHost(), way=way)
    try:
        await upstream.started(_NoHost())
        yield upstream
    finally:
        await upstream.close()


def _build_report(spec: ServerSpec, entries: Iterable[CatalogEntry]) -> ServerReport:
    """Return the report that `holdfast mcp list` shows of a server that ran for one command."""
    entry_list = list(entries)
    return ServerReport(
        server=spec.name,
        state="idle",
        tools=len(entry_list),
        tool_tokens=sum(entry.tool.tokens for entry in entry_list),
        flagged=tuple(f"{e.own_name}: {', '.join(e.flags)}" for e in entry_list if e.flags),
        changed=tuple(f"{e.own_name}: {e.change}" for e in entry_list if e.change),
        at=time.time(),
    )


async def try_server(
    spec: ServerSpec, settings: Settings, scope: Scope, hear: Callable[[str], None]
) -> ServerTrial:
    """Start a server and read its lists; `hear` gets the first lines of its error stream."""
    began = time.monotonic()
    async with (
        Holdfast.open(scope=scope, settings=settings) as engine,
        _run_server(spec, hear) as upstream,
    ):
        card = upstream.card or ServerCard()
        entries = Catalog([(spec, card)], {}).entries.values()  # the server's current definitions
        tools = [
            TrialTool(each.own_name, each.tool.tokens, each.flags, each.tool.description)
            for each in entries
        ]
        await report(engine.store, engine.scope, [_build_report(spec, entries)])
        return ServerTrial(
            version=card.version,
            protocol=card.protocol,
            seconds=time.monotonic() - began,
            tools=tuple(tools),
            prompts=len(card.prompts),
            resources=len(card.resources),
            left_out=card.left_out,
        )


async def call_tool(
    spec: ServerSpec,
    settings: Settings,
    scope: Scope,
    tool: str,
    arguments: Mapping[str, Any],
    hear: Callable[[str], None],
) -> CallTrial:
    """Call a tool of a server once, as the gateway would."""
    async with (
        Holdfast.open(scope=scope, settings=settings) as engine,
        _run_server(spec, hear) as upstream,
    ):
        card = upstream.card or ServerCard()
        await engine.toolbox.register(card.tools, spec.name)
        pinned = {stored.key: stored for stored in await engine.toolbox.all(spec.name)}
        catalog = Catalog([(spec, card)], pinned)
        entry = catalog.find(tool)
        if entry is None:
            raise ToolServerError(
                "the server has no such tool, or it may not be called",
                fix=f"See `holdfast mcp test {spec.name}`.",
                kind="unknown",
            )
        params = types.CallToolRequestParams(name=entry.own_name, arguments=dict(arguments))
        request = types.CallToolRequest(params=params)
        try:
            result = await upstream.call(request, CALL_RESULT, _NoHost())
        except MCPError as error:
            raise ToolServerError(f"the server refused the call (code {error.code})") from error
        if isinstance(result, types.CallToolResult):
            called = GatewayCall(
                entry.name,
                arguments,
                entry.definition.get("outputSchema"),
                max_uncited_characters(entry.definition.get("_meta")),
            )
            result = (
                await Results(engine, window=model_window(settings)).cite_result(result, called)
            )[0]
        failures = int(getattr(result, "is_error", None) is True)
        server_report = _build_report(spec, catalog.entries.values())
        done = msgspec.structs.replace(server_report, calls=1, failed=failures)
        await report(engine.store, engine.scope, [done])
        written = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        blocks = written.get("content", [])
        text = "\n".join(block.get("text", f"[{block['type']}]") for block in blocks)
        return CallTrial(text=text, result=written, is_error=bool(written.get("isError")))
