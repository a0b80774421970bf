"""What the gateway adds to a call, and how soon it lists with twenty servers configured.

The server runs in this process on both sides, so that the two routes differ by the gateway alone;
what starting programs takes is their own. Medians of calls that take turns, direct and through.
Last, `holdfast mcp` itself is started as a host starts it, with what it learnt of the twenty the
last time, and asked for its list: most of that is Python, which imports the SDK.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer
from rich.console import Console

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway, GatewayOptions
from holdfast.surfaces.mcp.handlers import gateway_server

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
        wall, cpu = _process(Path(folder))
        _, sdk = _timed([sys.executable, "-c", "import mcp.server.stdio"], b"")
        console.print(
            f"mcp: `holdfast mcp` with {_SERVERS} servers, started: listed in {wall:.2f} s "
            f"({cpu:.2f} s of CPU, of which the SDK's import takes {sdk:.2f})"
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


def _process(folder: Path) -> tuple[float, float]:
    """Seconds until a new process has listed its tools, and seconds of CPU until its end."""
    entries = {spec.name: {"command": spec.command} for spec in _specs(_SERVERS)}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": entries}))
    command = [sys.executable, "-m", "holdfast", "mcp", "--config", str(folder / "servers.json")]
    about = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages]
    store = ["--store", f"sqlite:///{folder}/holdfast.db"]
    return _timed([*command, *store], "".join(lines).encode(), answers=2)


def _timed(command: list[str], sent: bytes, answers: int = 0) -> tuple[float, float]:
    """Seconds until a program has written its answers, and seconds of CPU until its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603 - our own
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(sent)
        process.stdin.flush()
        for _ in range(answers):
            process.stdout.readline()
        wall = time.perf_counter() - began
        process.stdin.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
