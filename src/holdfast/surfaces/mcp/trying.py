"""A server tried by a person: started once, listed, called once, and ended.

trying: after gateway, for the command line.
"""

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
from holdfast.surfaces.mcp.catalog import Catalog, Entry
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import window_of
from holdfast.surfaces.mcp.pipe import way_to
from holdfast.surfaces.mcp.results import Called, Results, whole_characters
from holdfast.surfaces.mcp.upstream import CALL_RESULT, Upstream


class TriedTool(msgspec.Struct, frozen=True):
    """A tool, as its server defines it."""

    name: str
    tokens: int
    flags: tuple[str, ...]
    description: str


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A server that started."""

    version: str
    protocol: str
    seconds: float
    tools: tuple[TriedTool, ...]
    prompts: int
    resources: int
    left_out: int


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to."""

    text: str
    result: Any
    """As the protocol writes it."""
    is_error: bool


class _Nobody:
    """No host: nothing can be asked of it, and nothing needs to be told."""

    identity = "command line"
    capabilities: types.ClientCapabilities | None = None
    is_modern = True

    async def ask(self, request: types.ServerRequest, result: type[Any]) -> Any:
        del request, result
        return types.ErrorData(code=types.INVALID_REQUEST, message="Nobody is here to be asked.")

    async def tell(self, notification: types.ServerNotification) -> None:
        del notification

    async def learnt(self, upstream: Upstream, learnt: ServerCard) -> None:
        upstream.card = learnt

    async def told(self, upstream: Upstream, notification: types.ServerNotification) -> None:
        del upstream, notification


@asynccontextmanager
async def _running(spec: ServerSpec, hear: Callable[[str], None]) -> AsyncIterator[Upstream]:
    way = partial(way_to, hear=hear)
    upstream = Upstream(spec, _Nobody(), way=way)
    try:
        await upstream.started(_Nobody())
        yield upstream
    finally:
        await upstream.close()


def _learnt(spec: ServerSpec, entries: Iterable[Entry]) -> ServerReport:
    """What `holdfast mcp list` says of a server that ran for one command."""
    listed = list(entries)
    return ServerReport(
        server=spec.name,
        state="idle",
        tools=len(listed),
        tool_tokens=sum(entry.tool.tokens for entry in listed),
        flagged=tuple(f"{e.own_name}: {', '.join(e.flags)}" for e in listed if e.flags),
        changed=tuple(f"{e.own_name}: {e.change}" for e in listed if e.change),
        at=time.time(),
    )


async def try_server(
    spec: ServerSpec, settings: Settings, scope: Scope, hear: Callable[[str], None]
) -> Tried:
    """Start a server and read its lists; `hear` gets the first lines of its error stream."""
    began = time.monotonic()
    async with (
        Holdfast.open(scope=scope, settings=settings) as engine,
        _running(spec, hear) as upstream,
    ):
        card = upstream.card or ServerCard()
        entries = Catalog([(spec, card)], {}).entries.values()  # as it says it now
        tools = [
            TriedTool(each.own_name, each.tool.tokens, each.flags, each.tool.description)
            for each in entries
        ]
        await report(engine.store, engine.scope, [_learnt(spec, entries)])
        return Tried(
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
) -> Answered:
    """Call a tool of a server once, as the gateway would."""
    async with (
        Holdfast.open(scope=scope, settings=settings) as engine,
        _running(spec, hear) as upstream,
    ):
        card = upstream.card or ServerCard()
        await engine.toolbox.register(card.tools, spec.name)
        pinned = {stored.key: stored for stored in await engine.toolbox.all(spec.name)}
        catalog = Catalog([(spec, card)], pinned)
        entry = catalog.named(tool)
        if entry is None:
            raise ToolServerError(
                "the server has no such tool, or it may not be called",
                fix=f"See `holdfast mcp test {spec.name}`.",
                kind="unknown",
            )
        params = types.CallToolRequestParams(name=entry.own_name, arguments=dict(arguments))
        request = types.CallToolRequest(params=params)
        try:
            result = await upstream.call(request, CALL_RESULT, _Nobody())
        except MCPError as error:
            raise ToolServerError(f"the server refused the call (code {error.code})") from error
        if isinstance(result, types.CallToolResult):
            called = Called(
                entry.name,
                arguments,
                entry.definition.get("outputSchema"),
                whole_characters(entry.definition.get("_meta")),
            )
            result = (await Results(engine, window=window_of(settings)).measured(result, called))[0]
        failures = int(getattr(result, "is_error", None) is True)
        learnt = _learnt(spec, catalog.entries.values())
        done = msgspec.structs.replace(learnt, calls=1, failed=failures)
        await report(engine.store, engine.scope, [done])
        written = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        blocks = written.get("content", [])
        text = "\n".join(block.get("text", f"[{block['type']}]") for block in blocks)
        return Answered(text=text, result=written, is_error=bool(written.get("isError")))
