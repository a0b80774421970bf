"""Slow, dead and mute servers delay no list; later ones are announced."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import MCPServer

from holdfast.surfaces.mcp import link, server_starts
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway
from holdfast.surfaces.mcp.server_starts import LIST_SECONDS
from tests.surfaces.mcp.gateways import gateway_over, host_of, hosted, in_memory, specs
from tests.surfaces.mcp.hostile_server import WAYS
from tests.surfaces.mcp.test_gateway import demo, words

HOSTILE = str(Path(__file__).with_name("hostile_server.py"))


@asynccontextmanager
async def mute() -> Any:
    """Return a server that reads its input and never answers."""
    said, read = anyio.create_memory_object_stream[Any](100)
    write, heard = anyio.create_memory_object_stream[Any](100)
    async with said, read, write, heard:
        yield read, write


def way_past_mute(servers: dict[str, MCPServer], gates: dict[str, asyncio.Event]) -> Any:
    """Return servers by name, each with its gate if it has one; all others never answer."""
    inner = in_memory(servers)

    @asynccontextmanager
    async def way(spec: ServerSpec) -> Any:
        if spec.name not in servers:
            async with mute() as streams:
                yield streams
            return
        if spec.name in gates:
            await gates[spec.name].wait()
        async with inner(spec) as streams:
            yield streams

    return way


@asynccontextmanager
async def late_demo(**options: Any) -> AsyncIterator[tuple[Gateway, Client, asyncio.Event]]:
    """The demo server in a gateway with a host; it starts when the event is set."""
    gate = asyncio.Event()
    servers = {"demo": demo()}
    way = way_past_mute(servers, {"demo": gate})
    async with hosted(servers, way=way, **options) as (gateway, host):
        yield gateway, host, gate


def test_twenty_servers_that_never_answer_hold_up_the_first_list_once_and_briefly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert LIST_SECONDS <= 1.0
    monkeypatch.setattr(server_starts, "LIST_SECONDS", 0.3)
    waits: list[float] = []
    wait = asyncio.wait

    async def counted(tasks: Any, *, timeout: float | None = None) -> Any:
        waits.append(timeout or 0.0)
        return await wait(tasks, timeout=timeout)

    async def main() -> None:
        names = [f"mute{n}" for n in range(20)]
        async with (
            gateway_over(specs(*names), way=way_past_mute({}, {}), listing="all") as gateway,
            host_of(gateway) as host,
        ):
            monkeypatch.setattr(asyncio, "wait", counted)
            await host.list_tools()
            assert len(waits) == 1
            assert 0 < waits[0] <= 0.3
            assert {each.state for each in gateway.upstreams.values()} == {"starting"}
            for _ in range(5):
                await host.list_tools()
                await host.list_prompts()
            assert len(waits) == 1
            assert {each.starts for each in gateway.upstreams.values()} == {1}

    asyncio.run(main())


@pytest.mark.usefixtures("brief_lists")
def test_a_server_that_comes_up_later_is_told_and_listed() -> None:
    async def main() -> None:
        told: list[type[Any]] = []
        news = asyncio.Event()

        async def hear(message: Any) -> None:
            told.append(type(message))
            if isinstance(message, types.ResourceListChangedNotification):
                news.set()  # the last of the three

        gate = asyncio.Event()
        way = way_past_mute({"demo": demo()}, {"demo": gate})
        async with (
            gateway_over(specs("demo", "mute"), way=way, listing="all") as gateway,
            host_of(gateway, message_handler=hear) as host,
        ):
            before = [tool.name for tool in (await host.list_tools()).tools]
            assert before == ["expand_ref"]
            gate.set()
            await asyncio.wait_for(news.wait(), 30)
            assert types.ToolListChangedNotification in told
            assert types.PromptListChangedNotification in told
            assert "demo__echo" in [tool.name for tool in (await host.list_tools()).tools]

    asyncio.run(main())


def test_what_is_cached_is_listed_at_once_beside_a_server_that_never_answers(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_starts, "LIST_SECONDS", 3_600)
    store = f"sqlite:///{tmp_path / 'holdfast.db'}"

    async def main(*names: str) -> list[str]:
        way = way_past_mute({"demo": demo()}, {})
        async with (
            gateway_over(specs(*names), way=way, store=store, listing="all") as gateway,
            host_of(gateway) as host,
        ):
            tools = (await asyncio.wait_for(host.list_tools(), 60)).tools
            return [tool.name for tool in tools]

    assert "echo" in asyncio.run(main("demo"))
    assert "demo__echo" in asyncio.run(main("demo", "mute"))


@pytest.mark.usefixtures("brief_lists")
def test_a_call_of_a_tool_that_no_list_had_waits_for_its_server() -> None:
    async def main() -> None:
        async with late_demo(listing="directory") as (_, host, gate):
            await host.list_tools()
            asked = {"name": "demo__echo", "arguments": {"text": "hello"}}
            call = asyncio.ensure_future(host.call_tool("call_tool", asked))
            gate.set()
            assert words(await asyncio.wait_for(call, 30)) == "hello"

    asyncio.run(main())


def test_a_change_that_is_told_while_the_server_starts_is_read_when_it_has() -> None:
    lists = 0
    read_again = asyncio.Event()

    async def list_tools(context: Any, _: Any) -> types.ListToolsResult:
        nonlocal lists
        lists += 1
        if lists == 1:
            told = types.ToolListChangedNotification()
            await context.session.send_notification(told, context.request_id)
        else:
            read_again.set()
        names = ["early", "late"][:lists]
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=tools)

    async def main() -> None:
        server: Server[Any] = Server("eager", on_list_tools=list_tools)

        def way(spec: ServerSpec) -> Any:
            del spec
            return InMemoryTransport(server)

        async with gateway_over(specs("eager"), way=way, listing="all") as gateway:
            await gateway.upstreams["eager"].started(None)
            await asyncio.wait_for(read_again.wait(), 30)

    asyncio.run(main())


@pytest.mark.usefixtures("brief_lists")
def test_a_host_that_lists_but_once_can_find_what_comes_up_later() -> None:
    async def main() -> None:
        async with late_demo() as (gateway, host, gate):
            tools = {tool.name: tool for tool in (await host.list_tools()).tools}
            assert "Starting: demo" in (tools["find_tools"].description or "")
            gate.set()
            found = await host.call_tool("find_tools", {"query": "say what it is told"})
            assert "demo__echo" in words(found)
            asked = {"name": "demo__echo", "arguments": {"text": "hello"}}
            assert words(await host.call_tool("call_tool", asked)) == "hello"
            assert gateway.catalog.lists_all  # a host that lists again gets the tools themselves

    asyncio.run(main())


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_advertises_lists_it_does_not_have_gives_the_others(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "OPTIONAL_LIST_SECONDS", 0.05)
    monkeypatch.setattr(server_starts, "LIST_SECONDS", 3_600)
    spec = ServerSpec(name="bad", command=sys.executable, args=(HOSTILE, way))

    async def main() -> list[str]:
        async with (
            gateway_over([spec], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await asyncio.wait_for(gateway.upstreams["bad"].started(None), 60)
            assert (await host.list_prompts()).prompts == []
            assert (await host.list_resources()).resources == []
            return [tool.name for tool in (await host.list_tools()).tools]

    names = asyncio.run(main())
    assert ("huge" in names) == (way != "boasts of tools")


def test_who_gives_up_starts_returns_once_they_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_starts, "LIST_SECONDS", 0.01)

    def starts() -> list[str]:
        return [name for task in asyncio.all_tasks() if "_try_start" in (name := repr(task))]

    async def main() -> None:
        way = way_past_mute({}, {})
        async with gateway_over(specs("a", "b"), way=way) as gateway, host_of(gateway) as host:
            await host.list_tools()
            assert len(starts()) == 2
            await gateway.starts.close()
            assert starts() == []

    asyncio.run(main())
