"""Requests and notifications of servers, and the hosts that get them."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning

from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway
from tests.surfaces.mcp.gateways import ERAS, gateway_over, host_of, hosted, in_memory, specs
from tests.surfaces.mcp.test_gateway import contents, demo, words
from tests.surfaces.mcp.test_starting import late_demo

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def curious() -> MCPServer:
    """A server that asks its host everything that may be asked."""
    server = MCPServer("curious")

    @server.tool(structured_output=False)
    async def sample(ctx: Context) -> str:
        """Asks the host's model."""
        message = types.SamplingMessage(role="user", content=types.TextContent(text="Tide?"))
        answer = await ctx.session.create_message([message], max_tokens=10)
        assert isinstance(answer.content, types.TextContent)
        return answer.content.text

    @server.tool(structured_output=False)
    async def elicit(ctx: Context) -> str:
        """Asks the host's user."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = await ctx.session.elicit_form("Who?", schema, ctx.request_id)
        return f"{answer.action} {answer.content}"

    @server.tool(structured_output=False)
    async def roots(ctx: Context) -> str:
        """Asks where the host works."""
        return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)

    @server.tool(structured_output=False)
    async def tell(ctx: Context) -> str:
        """Notify the host, then return."""
        for news in ("one", "two"):
            await ctx.info(news)
        return "told"

    return server


def asked(gateway: Gateway, **more: Any) -> Any:
    """A host of the older era that can be asked everything."""

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        del context, params
        content = types.TextContent(text="High.")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async def roots(context: Any) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])  # type: ignore[arg-type]

    return host_of(
        gateway,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        **more,
    )


@pytest.mark.parametrize(
    ("tool", "answer"),
    [("sample", "High."), ("elicit", "accept {'name': 'Ann'}"), ("roots", "file:///work")],
)
def test_a_server_of_both_eras_asks_a_host_of_the_older(tool: str, answer: str) -> None:
    async def main() -> str:
        way = in_memory({"curious": curious()})
        async with (
            gateway_over(specs("curious"), way=way, listing="all") as gateway,
            asked(gateway) as host,
        ):
            await host.list_tools()
            result = await host.call_tool(tool, {})
            assert not result.is_error, words(result)
            return words(result)

    assert asyncio.run(main()) == answer


@pytest.mark.parametrize("era", ERAS)
def test_a_host_that_can_be_asked_is_asked_though_another_that_cannot_listed_first(
    era: str,
) -> None:
    async def main() -> list[int]:
        way = in_memory({"curious": curious()})
        starts = []
        async with gateway_over(specs("curious"), way=way, listing="all") as gateway:
            async with host_of(gateway, era) as first:
                await first.list_tools()
            async with asked(gateway) as second:
                for _ in range(2):
                    assert words(await second.call_tool("sample", {})) == "High."
                    starts.append(gateway.upstreams["curious"].starts)
            # its missing abilities do not end a server's work
            async with host_of(gateway, era) as third:
                await third.call_tool("tell", {})
                starts.append(gateway.upstreams["curious"].starts)
        return starts

    assert asyncio.run(main()) == [2, 2, 2]


@pytest.mark.parametrize("era", ERAS)
def test_what_a_server_logs_at_a_call_is_told_to_its_host(era: str) -> None:
    async def main() -> list[Any]:
        heard: list[Any] = []

        async def hear(params: types.LoggingMessageNotificationParams) -> None:
            heard.append(params.data)

        way = in_memory({"curious": curious()})
        async with (
            gateway_over(specs("curious"), way=way, listing="all") as gateway,
            host_of(gateway, era, logging_callback=hear) as host,
        ):
            await host.list_tools()
            wanted: Any = {types.LOG_LEVEL_META_KEY: "info"}  # as hosts of the newer era ask for it
            assert words(await host.call_tool("tell", {}, meta=wanted)) == "told"
        return heard

    assert asyncio.run(main()) == ["one", "two"]


def levelled(levels: list[str]) -> Server[Any]:
    """A server that records its log level."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=[types.Tool(name="t", input_schema={"type": "object"})])

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        del context, params
        return types.CallToolResult(content=[types.TextContent(text="done")])

    async def set_level(context: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        del context
        levels.append(params.level)
        return types.EmptyResult()

    server: Server[Any] = Server("l", on_list_tools=list_tools, on_call_tool=call_tool)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


def _to(server: Server[Any]) -> Any:
    def way(spec: ServerSpec) -> Any:
        del spec
        return InMemoryTransport(server)

    return way


@pytest.mark.parametrize(("advertises", "told"), [(True, ["warning", "debug"]), (False, [])])
def test_a_level_reaches_servers_that_log_whether_they_run_or_start_later(
    advertises: bool, told: list[str]
) -> None:
    async def main() -> list[str]:
        levels: list[str] = []
        server = levelled(levels)
        if not advertises:
            capabilities = server.get_capabilities

            def without_log(*args: Any, **options: Any) -> Any:
                return capabilities(*args, **options).model_copy(update={"logging": None})

            server.get_capabilities = without_log  # type: ignore[method-assign]
        way = _to(server)
        async with (
            gateway_over(specs("l"), way=way, listing="all") as gateway,
            host_of(gateway) as host,
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await host.set_logging_level("warning")  # before it runs
                await host.call_tool("t", {})
                await host.set_logging_level("debug")
        return levels

    assert asyncio.run(main()) == told


def test_a_server_that_asks_for_roots_as_it_starts_is_answered() -> None:
    """As server-filesystem does: it takes its folders from its host."""
    answers: list[str] = []
    known = asyncio.Event()

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        del params
        request = types.ListRootsRequest()
        result = await context.session.send_request(request, types.ListRootsResult)
        answers.extend(str(root.uri) for root in result.roots)
        known.set()
        return types.ListToolsResult(tools=[])

    async def main() -> None:
        server: Server[Any] = Server("files", on_list_tools=list_tools)
        async with (
            gateway_over(specs("files"), way=_to(server), listing="all") as gateway,
            asked(gateway) as host,
        ):
            await host.list_tools()
            await asyncio.wait_for(known.wait(), 30)

    asyncio.run(main())
    assert answers == ["file:///work"]


def test_a_server_that_tells_of_changes_without_end_is_read_no_oftener_than_it_answers() -> None:
    lists = 0

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        nonlocal lists
        del context, params
        lists += 1
        return types.ListToolsResult(tools=[types.Tool(name="t", input_schema={"type": "object"})])

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        del params
        for _ in range(500):
            told = types.ToolListChangedNotification()
            await context.session.send_notification(told, context.request_id)
        return types.CallToolResult(content=[types.TextContent(text="done")])

    async def main() -> int:
        server: Server[Any] = Server("l", on_list_tools=list_tools, on_call_tool=call_tool)
        async with (
            gateway_over(specs("l"), way=_to(server), listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            await host.call_tool("t", {})
            link = gateway.upstreams["l"]._link
            assert link is not None
            return len(link._beside)

    assert asyncio.run(main()) <= 2
    assert lists < 500


@pytest.mark.usefixtures("brief_lists")
def test_a_prompt_or_a_resource_that_no_list_had_waits_for_its_server() -> None:
    async def main() -> None:
        async with late_demo(listing="directory") as (_, host, gate):
            await host.list_tools()
            prompt = asyncio.ensure_future(host.get_prompt("demo__greet", {"name": "Ann"}))
            page = asyncio.ensure_future(host.read_resource("demo://pages/7"))
            gate.set()
            (message,) = (await asyncio.wait_for(prompt, 30)).messages
            assert isinstance(message.content, types.TextContent)
            assert message.content.text == "Hello Ann"
            assert contents(await asyncio.wait_for(page, 30)) == "page 7"

    asyncio.run(main())


def test_a_server_cannot_take_the_place_of_the_tool_that_opens_refs() -> None:
    async def main() -> None:
        server = demo()

        @server.tool(name="expand_ref", structured_output=False)
        def opens() -> str:
            """Opens something else."""
            return "mine"

        async with hosted({"demo": server}, listing="all", window=10_000) as (_, host):
            names = [tool.name for tool in (await host.list_tools()).tools]
            assert sorted(names) == sorted(set(names))
            cited = await host.call_tool("log", {"lines": 400})
            (ref,) = (cited.meta or {})["holdfast/refs"]
            opened = await host.call_tool("expand_ref", {"ref_id": ref, "lines": "401-401"})
            assert "99999 ERROR cannot reach db-3" in words(opened)
            assert words(await host.call_tool("demo__expand_ref", {})) == "mine"

    asyncio.run(main())
