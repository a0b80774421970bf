"""What the gateway adds to a call, and how soon it lists with many servers configured.

Beside calling the same server directly, in one process and one run: figures are ratios and
differences of medians. Run it as `python -m benchmarks.mcp`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway, GatewayOptions
from holdfast.surfaces.mcp.serving import gateway_server

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool(structured_output=False)
def echo(text: str) -> str:
    "Says what it is told."
    return text
server.run("stdio")
"""
CALLS = 200
SERVERS = 20


async def timed(client: Client, name: str) -> list[float]:
    await client.list_tools()
    taken = []
    for n in range(CALLS + 20):
        began = time.perf_counter()
        await client.call_tool(name, {"text": f"hello {n}"})
        taken.append((time.perf_counter() - began) * 1000)
    return taken[20:]


async def calls(program: str) -> None:
    async with Client(StdioServerParameters(command=sys.executable, args=[program])) as client:
        direct = await timed(client, "echo")
    spec = ServerSpec(name="bench", command=sys.executable, args=(program,))
    async with Holdfast.open("memory:", settings=Settings()) as engine:
        gateway = Gateway(engine, [spec], GatewayOptions(listing="all"))
        async with Client(gateway_server(gateway), mode="legacy") as client:
            through = await timed(client, "echo")
        await gateway.close()
    ours, theirs = statistics.median(through), statistics.median(direct)
    print(f"a call: direct {theirs:.2f} ms, through {ours:.2f} ms, added {ours - theirs:.2f} ms")


async def start(program: str, folder: str) -> None:
    specs = [
        ServerSpec(name=f"server{n}", command=sys.executable, args=(program, str(n)))
        for n in range(SERVERS)
    ]
    for when in ("first", "again"):
        began = time.perf_counter()
        async with Holdfast.open(f"sqlite:///{folder}/h.db", settings=Settings()) as engine:
            gateway = Gateway(engine, specs, GatewayOptions())
            await gateway.open()
            async with Client(gateway_server(gateway), mode="legacy") as client:
                tools = (await client.list_tools()).tools
                taken = time.perf_counter() - began
            starts = sum(each.starts for each in gateway.upstreams.values())
            print(
                f"{SERVERS} servers, {when}: {len(tools)} tools in {taken:.2f} s, {starts} started"
            )
            await gateway.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "server.py"
        program.write_text(SERVER)
        asyncio.run(calls(str(program)))
        asyncio.run(start(str(program), folder))


if __name__ == "__main__":
    main()
