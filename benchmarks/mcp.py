"""What the gateway adds to a call, and how soon it lists with twenty servers configured.

The server runs in this process on both sides, so that the two routes differ by the gateway alone;
what starting programs takes is their own. Medians of calls that take turns, direct and through.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer
from rich.console import Console

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway, GatewayOptions
from holdfast.surfaces.mcp.serving import gateway_server

_CALLS = 200
_SERVERS = 20


def run(console: Console) -> None:
    """Print what a call and a first list take."""
    direct, through = asyncio.run(_calls())
    console.print(
        f"mcp: a call takes {direct:.2f} ms directly, {through:.2f} ms through the gateway, "
        f"which adds {through - direct:.2f} ms"
    )
    with tempfile.TemporaryDirectory() as folder:
        for when in ("first", "again"):
            seconds, starts = asyncio.run(_listed(f"sqlite:///{folder}/holdfast.db"))
            console.print(
                f"mcp: {_SERVERS} servers, {when}: listed in {seconds:.2f} s, {starts} started"
            )


def _server() -> MCPServer:
    server = MCPServer("bench")

    @server.tool(structured_output=False)
    def echo(text: str) -> str:
        """Says what it is told."""
        return text

    return server


def _way(spec: ServerSpec) -> AbstractAsyncContextManager[Any]:
    del spec
    return InMemoryTransport(_server())


def _specs(number: int) -> list[ServerSpec]:
    return [ServerSpec(name=f"server{n}", command="unused") for n in range(number)]


async def _calls() -> tuple[float, float]:
    async with Holdfast.open("memory:", settings=Settings()) as engine:
        gateway = Gateway(engine, _specs(1), GatewayOptions(listing="all"), way=_way)
        async with (
            Client(_server(), mode="legacy") as direct,
            Client(gateway_server(gateway), mode="legacy") as through,
        ):
            routes: list[tuple[Client, list[float]]] = [(direct, []), (through, [])]
            for n in range(_CALLS + 20):
                for client, times in routes:
                    began = time.perf_counter()
                    await client.call_tool("echo", {"text": f"hello {n}"})
                    times.append((time.perf_counter() - began) * 1000)
            medians = [statistics.median(times[20:]) for _, times in routes]
        await gateway.close()
    return medians[0], medians[1]


async def _listed(store: str) -> tuple[float, int]:
    began = time.perf_counter()
    async with Holdfast.open(store, settings=Settings()) as engine:
        gateway = Gateway(engine, _specs(_SERVERS), GatewayOptions(listing="directory"), way=_way)
        await gateway.open()
        async with Client(gateway_server(gateway), mode="legacy") as client:
            await client.list_tools()
            seconds = time.perf_counter() - began
            await client.call_tool("find_tools", {"query": "echo"})  # waits for all servers
        starts = sum(each.starts for each in gateway.upstreams.values())
        await gateway.close()
    return seconds, starts
