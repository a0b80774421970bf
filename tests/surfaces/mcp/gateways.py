"""Gateways for the tests: over servers in memory, or over programs."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway, GatewayOptions
from holdfast.surfaces.mcp.handlers import gateway_server

DEMO = str(Path(__file__).with_name("demo_server.py"))
ERAS = ("legacy", "2026-07-28")


def program(name: str = "demo", *args: str, **more: Any) -> ServerSpec:
    """The demo server as a program."""
    return ServerSpec(name=name, command=sys.executable, args=(DEMO, *args), **more)


def specs(*names: str) -> list[ServerSpec]:
    """Specifications of servers that are reached another way than by their command."""
    return [ServerSpec(name=name, command="unused") for name in names]


def in_memory(servers: Mapping[str, MCPServer]) -> Any:
    """A way to servers of this process."""

    def way(spec: ServerSpec) -> AbstractAsyncContextManager[Any]:
        return InMemoryTransport(servers[spec.name])

    return way


@asynccontextmanager
async def gateway_over(
    specs: list[ServerSpec],
    *,
    way: Any = None,
    store: str = "memory:",
    settings: Settings | None = None,
    **options: Any,
) -> AsyncIterator[Gateway]:
    """A gateway that is open."""
    async with Holdfast.open(store, settings=settings or Settings()) as engine:
        gateway = Gateway(engine, specs, GatewayOptions(**options), way=way)
        await gateway.open()
        try:
            yield gateway
        finally:
            await gateway.close()


@asynccontextmanager
async def host_of(gateway: Gateway, era: str = "legacy", **more: Any) -> AsyncIterator[Client]:
    """A host of a gateway, in this process."""
    async with Client(gateway_server(gateway), mode=era, **more) as client:
        yield client


@asynccontextmanager
async def hosted(
    servers: Mapping[str, MCPServer], *, way: Any = None, era: str = "legacy", **options: Any
) -> AsyncIterator[tuple[Gateway, Client]]:
    """A gateway over servers of this process, and a host of it."""
    way = way or in_memory(servers)
    async with (
        gateway_over(specs(*servers), way=way, **options) as gateway,
        host_of(gateway, era) as host,
    ):
        yield gateway, host
