"""Real servers called directly and through `holdfast mcp --config`, and their results compared.

One gateway, run as people run it, serves all of them. A result is the same if its JSON is, except
for `_meta`; or it is cited, and then the stored original, read by another engine of the store, is
a text of the direct result, character by character. Then each server is stopped, called, and
killed during the call.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from holdfast import Holdfast
from tests.servers.table import Call, Served
from tests.servers.world import build

PATIENCE = float(os.environ.get("SERVER_SECONDS", "120"))
"""Seconds until something that is waited for is given up; nothing is measured by it."""
_CHANCE = re.compile(r"\d?\d:\d\d:\d\d(\.\d+)?( [AP]M)?|[0-9a-f]{8}(-[0-9a-f]{4,12}){4}")
"""Times of day, and ids by chance."""
_REFS = "holdfast/refs"


@dataclass
class Verdict:
    """The result of one server."""

    name: str
    tools: int = 0
    called: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    killed: str = ""
    """The result of a kill during a call."""
    trouble: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Address:
    """Where a server listens, if it is none that the gateway starts."""

    transport: str
    url: str


# --- hosts ---------------------------------------------------------------------------------------


async def _sample(context: Any, params: types.CreateMessageRequestParams) -> Any:
    del context, params
    content = types.TextContent(text="The tide is high.")
    return types.CreateMessageResult(role="assistant", content=content, model="scripted")


async def _elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    del context, params
    return types.ElicitResult(action="decline")


def host(transport: Any, root: Path, hear: Any = None) -> Client:
    """A host of the older era, as today's are, that can be asked everything."""

    async def roots(context: Any) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": root.as_uri()})])

    return Client(
        transport,
        mode="legacy",
        sampling_callback=_sample,
        elicitation_callback=_elicit,
        list_roots_callback=roots,
        message_handler=hear,
    )


def directly(served: Served, address: Address | None) -> Any:
    """The way to a server without us."""
    if address is None:
        command = [*served.package.command, *served.arguments]
        return StdioServerParameters(command=command[0], args=command[1:], env=dict(served.env))
    return address.url if address.transport == "http" else sse_client(address.url)


def entry(served: Served, address: Address | None) -> dict[str, Any]:
    """The same for the gateway's list of servers."""
    if address is not None:
        return {"type": address.transport, "url": address.url}
    command = [*served.package.command, *served.arguments]
    return {"command": command[0], "args": command[1:], "env": dict(served.env)}


class Through:
    """A gateway before all servers, as a host has it."""

    def __init__(self, client: Client, store: str, changed: asyncio.Event) -> None:
        self.client = client
        self.store = store
        self.changed = changed
        """Set when the gateway reports a changed list."""
        self.tools: dict[str, types.Tool] = {}

    async def know(self, servers: Iterable[Served]) -> None:
        """Read the list until every server has its tools in it."""
        names = {served.name for served in servers}
        async with asyncio.timeout(PATIENCE):
            while True:
                self.changed.clear()
                self.tools = {tool.name: tool for tool in (await self.client.list_tools()).tools}
                if names <= {name.partition("__")[0] for name in self.tools}:
                    return
                await self.changed.wait()

    async def original(self, ref: str) -> str:
        """A stored content as another engine of the store has it; the gateway opens it too."""
        async with Holdfast.open(self.store) as engine:
            stored = await engine.store.get(engine.scope, ref)
        assert stored is not None, ref
        text = stored.data.decode()
        opened = await self.client.call_tool("expand_ref", {"ref_id": ref})
        assert not opened.is_error, opened.content
        return text


@asynccontextmanager
async def gateway(config: Path, store: Path, root: Path) -> AsyncIterator[Through]:
    """`holdfast mcp --config … --all`, as a host starts it."""
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    arguments = ["-m", "holdfast", "mcp", "--config", str(config), "--all"]
    arguments += ["--store", (url := f"sqlite:///{store}")]
    started = StdioServerParameters(command=sys.executable, args=arguments)
    async with host(started, root, hear) as client:
        yield Through(client, url, changed)


# --- comparing -----------------------------------------------------------------------------------


Given = types.CallToolResult | int
"""The result of a call, or the code of an error."""


async def given(client: Client, call: Call, prefix: str = "") -> Given:
    """Call a tool."""
    name, arguments = call
    try:
        async with asyncio.timeout(PATIENCE):
            return await client.call_tool(prefix + name, arguments)
    except MCPError as error:
        return error.error.code


def plain(result: Given) -> str:
    """A result to be compared: without `_meta`, the time of day and chance."""
    if isinstance(result, int):
        return f"error {result}"
    value = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    value.pop("_meta", None)
    return _CHANCE.sub("…", json.dumps(value, sort_keys=True))


async def judged(direct: Given, through: Given, front: Through) -> str:
    """Compare a result of the gateway with the direct one; after DIFFERS, return the difference."""
    if plain(direct) == plain(through):
        is_error = isinstance(direct, int) or direct.is_error
        return "same error" if is_error else "same"
    if isinstance(direct, int) or isinstance(through, int):
        return f"DIFFERS: {plain(direct)[:200]} / {plain(through)[:200]}"
    refs = (through.meta or {}).get(_REFS, [])
    if not refs:
        return f"DIFFERS: {plain(direct)[:200]} / {plain(through)[:200]}"
    texts = _texts(direct)
    for ref in refs:
        if await front.original(ref) not in texts:
            return "DIFFERS: what a citation opens is no text of the direct result"
    return "cited"


def _texts(result: types.CallToolResult) -> list[str]:
    """Return the citable parts of a result: its texts, all of them together, and its structure."""
    blocks = [block.text for block in result.content if isinstance(block, types.TextContent)]
    embedded = [
        block.resource.text
        for block in result.content
        if isinstance(block, types.EmbeddedResource)
        and isinstance(block.resource, types.TextResourceContents)
    ]
    value = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    return [*blocks, *embedded, "\n".join(blocks), value]


# --- killing -------------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    paths = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for path in paths for word in path.read_text().split()]


def _process_of(served: Served) -> int:
    """Return the server's process: a child of the gateway, which is a child of ours."""
    program = str(served.package.path).encode()
    for gateway_pid in _children(os.getpid()):
        for pid in _children(gateway_pid):
            if program in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    raise AssertionError(f"{served.name} does not run")


async def killed(served: Served, other: Served, front: Through, pid: int) -> str:
    """Kill a server while it is at a call; empty if that ended in a typed error."""
    os.kill(pid, signal.SIGSTOP)  # from here on it takes the call, and does not answer
    call = asyncio.ensure_future(given(front.client, served.probe, f"{served.name}__"))
    # The gateway takes calls in their order: when another is answered, this one was sent.
    await given(front.client, other.probe, f"{other.name}__")
    os.kill(pid, signal.SIGKILL)
    result = await call
    if isinstance(result, int) or not result.is_error:
        return f"the kill gave {plain(result)[:200]}"
    error = (result.meta or {}).get("holdfast/error", {})
    if (error.get("server"), error.get("kind")) != (served.name, "gone"):
        return f"the kill gave {error}"
    return ""


# --- addresses -----------------------------------------------------------------------------------


@contextmanager
def listening(served: Served, port: int) -> Iterator[int]:
    """Yield the process of a separate server at a port."""
    command = [*served.package.command, *served.arguments]
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


async def reachable(port: int) -> None:
    """Wait until somebody listens at a port."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number


# --- all of it -----------------------------------------------------------------------------------


async def compared(servers: list[Served], addressed: list[Served], folder: Path) -> list[Verdict]:
    """Call everything twice, then kill everything once."""
    world = folder / "world"
    ports = {served.name: free_port() for served in addressed}
    with ExitStack() as stack:
        pids = {
            served.name: stack.enter_context(listening(served, ports[served.name]))
            for served in addressed
        }
        for port in ports.values():
            await reachable(port)
        addresses = {served.name: _address(served, ports[served.name]) for served in addressed}
        every = [*servers, *addressed]
        build(world)
        verdicts = {served.name: Verdict(served.name) for served in every}
        direct = {
            served.name: await _direct(served, addresses.get(served.name), world, verdicts)
            for served in every
        }
        build(world)
        config = folder / "servers.json"
        entries = {each.name: entry(each, addresses.get(each.name)) for each in every}
        config.write_text(json.dumps({"mcpServers": entries}))
        async with gateway(config, folder / "holdfast.db", world / "files") as front:
            await front.know(every)
            for served in every:
                await _through(served, direct[served.name], front, verdicts[served.name])
            for number, served in enumerate(every):
                other = every[number - 1]
                verdict = verdicts[served.name]
                if served.name in ports:
                    trouble = await killed(served, other, front, pids[served.name])
                    stack.enter_context(listening(served, ports[served.name]))
                    await reachable(ports[served.name])
                else:
                    trouble = await killed(served, other, front, _process_of(served))
                trouble = trouble or await _again(served, front)
                verdict.killed = "failed" if trouble else "gone, then back"
                verdict.trouble += [trouble] if trouble else []
    return list(verdicts.values())


def _address(served: Served, port: int) -> Address:
    transport = served.name.rpartition("-")[2]
    return Address(transport, f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}")


async def _direct(
    served: Served, address: Address | None, world: Path, verdicts: dict[str, Verdict]
) -> list[Given]:
    """Return a server's result without the gateway."""
    verdict = verdicts[served.name]
    async with host(directly(served, address), world / "files") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        results = [await given(client, call) for call in served.calls]
        listed |= {tool.name for tool in (await client.list_tools()).tools}
    called = {name for name, _ in served.calls}
    verdict.tools, verdict.called = len(listed), len(called & listed)
    if address is None and (left := listed - called - set(served.uncalled)):
        verdict.trouble.append(f"not called: {', '.join(sorted(left))}")
    return results


async def _through(served: Served, direct: list[Given], front: Through, verdict: Verdict) -> None:
    for call, before in zip(served.calls, direct, strict=True):
        after = await given(front.client, call, f"{served.name}__")
        word = await judged(before, after, front)
        kind, _, rest = word.partition(": ")
        verdict.counts[kind] += 1
        if rest:
            verdict.trouble.append(f"{call[0]} {rest}")


async def _again(served: Served, front: Through) -> str:
    """Call the server that was killed: it starts anew."""
    result = await given(front.client, served.probe, f"{served.name}__")
    if isinstance(result, int) or result.is_error:
        return f"after the kill it gave {plain(result)[:200]}"
    return ""
