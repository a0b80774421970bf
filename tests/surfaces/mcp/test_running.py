"""The server and the gateway as they are run: settings, addresses, tokens, connections."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import httpx2
import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client

from holdfast.engine import Holdfast
from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.surfaces.mcp.gateway import model_window
from holdfast.surfaces.mcp.handlers import own_server
from holdfast.surfaces.mcp.server_runner import check_address, http_app, serve_http
from tests.store.harness import content
from tests.surfaces.harness import Cli
from tests.surfaces.mcp.gateways import ERAS, gateway_over, host_of, in_memory, specs
from tests.surfaces.mcp.test_gateway import demo, words

LOG = "\n".join(f"{n:05} INFO request {n * 7} served" for n in range(3000))


@pytest.mark.parametrize("era", ERAS)
def test_the_engine_is_served_as_tools_with_schemas(era: str) -> None:
    async def main() -> None:
        async with (
            Holdfast.open("memory:", settings=Settings()) as engine,
            Client(own_server(engine), mode=era) as host,
        ):
            tools = {tool.name: tool for tool in (await host.list_tools()).tools}
            calls: list[tuple[str, dict[str, Any]]] = [
                ("cite", {"content": LOG, "question": "what happened?"}),
                ("search", {"query": "log request"}),
                ("recall", {"query": "deadline"}),
                ("facts", {"query": "deadline"}),
                ("count", {"text": "hello world"}),
                ("fit", {"request": {"model": "gpt-4o", "messages": [
                    {"role": "user", "content": "Hello"}]}, "limit": 1000}),
            ]  # fmt: skip
            for name, arguments in calls:
                result = await host.call_tool(name, arguments)
                assert not result.is_error, (name, words(result))
                jsonschema.validate(result.structured_content, tools[name].output_schema)
            cited = await host.call_tool("cite", {"content": LOG})
            ref = cited.structured_content["ref_id"]
            opened = await host.call_tool("expand_ref", {"ref_id": ref, "lines": "5-6"})
            assert "\n".join(LOG.splitlines()[4:6]) in words(opened)
            assert opened.structured_content is None
            assert tools["expand_ref"].output_schema is None
            (resource,) = (await host.list_resources()).resources
            assert str(resource.uri) == f"holdfast://refs/{ref}"
            for nothing in ({"text": 7}, {}, {"content": "hello"}):  # never a count of nothing
                refused = await host.call_tool("count", nothing)
                assert refused.is_error, nothing

    asyncio.run(main())


@pytest.mark.parametrize("stored", [0, 1, 2, 3, 4, 5])
def test_stored_contents_are_listed_page_by_page(
    stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.surfaces.mcp.handlers._PAGE", 2)

    async def main() -> None:
        async with (
            Holdfast.open("memory:", settings=Settings()) as engine,
            Client(own_server(engine)) as host,
        ):
            await engine.store.put(engine.scope, [content(f"text {n}") for n in range(stored)])
            listed, cursor = [], None
            for _ in range(stored + 1):
                page = await host.list_resources(cursor=cursor)
                listed += [str(resource.uri) for resource in page.resources]
                if (cursor := page.next_cursor) is None:
                    break
            refs = [content(f"text {n}").ref_id for n in reversed(range(stored))]
            assert listed == [f"holdfast://refs/{ref}" for ref in refs]
            assert cursor is None

    asyncio.run(main())


def _listed(**options: Any) -> list[str]:
    async def main() -> list[str]:
        way = in_memory({"demo": demo()})
        async with (
            gateway_over(specs("demo"), way=way, **options) as gateway,
            host_of(gateway) as host,
        ):
            return [tool.description or "" for tool in (await host.list_tools()).tools]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("listing", "all", "directory"),
        ("listed_tokens", 10, 100_000),
    ],
)
def test_what_is_listed_follows_the_options(name: str, first: Any, second: Any) -> None:
    assert _listed(**{name: first}) != _listed(**{name: second})


def test_the_directory_follows_its_limit() -> None:
    short = _listed(listing="directory", directory_tokens=30)
    assert short != _listed(listing="directory", directory_tokens=600)


def test_results_are_long_by_the_window_that_is_set() -> None:
    async def main(window: int) -> bool:
        way = in_memory({"demo": demo()})
        chosen = model_window(Settings(request_limit=window))
        async with (
            gateway_over(specs("demo"), way=way, listing="all", window=chosen) as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            result = await host.call_tool("log", {"lines": 60})
            return "holdfast/refs" in (result.meta or {})

    assert asyncio.run(main(1_000))
    assert not asyncio.run(main(0))
    assert model_window(Settings()) == 200_000


@pytest.mark.parametrize(
    ("flags", "listing"), [((), "auto"), (("--all",), "all"), (("--directory",), "directory")]
)
def test_the_command_says_how_tools_are_listed_and_where_hosts_connect(
    cli: Cli, flags: tuple[str, ...], listing: str
) -> None:
    served: list[tuple[object, ...]] = []

    async def serve(*how: object) -> None:
        served.append((how[-1],))

    async def serve_http(*how: object, host: str, port: int) -> None:
        served.append((how[-1], host, port))

    cli.monkeypatch.setattr("holdfast.surfaces.mcp.server_runner.serve_pipe", serve)
    cli.monkeypatch.setattr("holdfast.surfaces.mcp.server_runner.serve_http", serve_http)
    assert cli("mcp", *flags).code == 0
    assert cli("mcp", *flags, "--http").code == 0
    assert cli("mcp", *flags, "--http", "--host", "::1", "--port", "9").code == 0
    assert served == [(listing,), (listing, "127.0.0.1", 8788), (listing, "::1", 9)]


def test_an_address_that_is_refused_is_not_announced(cli: Cli) -> None:
    refused = cli("mcp", "--http", "--host", "0.0.0.0")
    assert refused.code == 2
    assert "open to other machines" in refused.err
    assert "serves MCP" not in refused.err


def test_tools_are_not_listed_in_two_ways(cli: Cli) -> None:
    refused = cli("mcp", "--all", "--directory")
    assert (refused.code, "--all or --directory" in refused.err) == (2, True)


# --- over HTTP -----------------------------------------------------------------------------------


def test_nobody_else_is_served_without_a_token() -> None:
    check_address("127.0.0.1", Settings())
    check_address("0.0.0.0", Settings(serve_token="t0ken"))
    check_address("0.0.0.0", Settings(serve_tokens={"ann": "t0ken"}))
    with pytest.raises(SettingsError, match="open to other machines"):
        check_address("0.0.0.0", Settings())


_BODY = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def _status(headers: dict[str, str], **settings: Any) -> int:
    async def main() -> int:
        async with Holdfast.open("memory:", settings=Settings()) as engine:
            app = http_app(server := own_server(engine), Settings(**settings))
            transport = httpx2.ASGITransport(app=app)
            async with (
                server.session_manager.run(),
                httpx2.AsyncClient(transport=transport, base_url="http://x") as client,
            ):
                sent = {"accept": "application/json, text/event-stream", **headers}
                sent["content-type"] = "application/json"
                body = json.dumps(_BODY).encode().ljust(20_000)
                return (await client.post("/mcp", content=body, headers=sent)).status_code

    return asyncio.run(main())


def test_names_and_origins_of_others_are_refused() -> None:
    ours = {"host": "127.0.0.1:8788"}
    assert _status({"host": "evil.example"}) == 421
    assert _status({**ours, "origin": "http://evil.example"}) == 403
    assert _status(ours) not in (401, 403, 421)
    assert _status({"host": "box.lan:8788"}) == 421
    assert _status({"host": "box.lan:8788"}, serve_names=["box.lan"]) not in (401, 403, 421)


def test_a_token_is_wanted_where_one_is_set_and_a_bound_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"host": "127.0.0.1:8788"}
    assert _status(ours, serve_token="t0ken") == 401
    assert _status({**ours, "authorization": "Bearer wrong"}, serve_token="t0ken") == 401
    assert _status({**ours, "authorization": "Basic t0ken"}, serve_token="t0ken") == 401
    for scheme in ("Bearer", "bearer", "BEARER "):
        header = {**ours, "authorization": f"{scheme} t0ken"}
        assert _status(header, serve_token="t0ken") != 401, scheme
    monkeypatch.setattr("holdfast.surfaces.mcp.pipe.MOST_BYTES", 10_000)
    assert _status(ours) == 413


def test_every_token_of_the_settings_opens_the_door() -> None:
    for token, is_refused in (("t-all", False), ("t-ann", False), ("t-eve", True), ("", True)):
        headers = {"host": "127.0.0.1:8788", "authorization": f"Bearer {token}"}
        status = _status(headers, serve_token="t-all", serve_tokens={"ann": "t-ann"})
        assert (status == 401) is is_refused, token


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_hosts_of_both_eras_are_served_over_http(port: int, era: str) -> None:
    async def main() -> None:
        settings = Settings(store_url="memory:")
        serving = asyncio.ensure_future(
            serve_http(settings, None, Scope(), host="127.0.0.1", port=port)
        )
        try:
            for _ in range(500):
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    break
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=era) as host:
                assert "cite" in [tool.name for tool in (await host.list_tools()).tools]
                counted = await host.call_tool("count", {"text": "hello world"})
                assert counted.structured_content["tokens"] == 2
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())
