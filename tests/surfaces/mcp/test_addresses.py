"""The gateway with remote servers: streamable HTTP and SSE, with the SDK's own servers.

Results through the gateway equal direct ones; headers are sent only to their own server.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast.settings import Settings
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.handlers import gateway_server
from holdfast.surfaces.mcp.server_runner import http_app
from tests.surfaces.mcp.addresses import (
    PATHS,
    Forgetful,
    Seen,
    answering,
    app_of,
    at,
    listening,
    redirecting,
)
from tests.surfaces.mcp.gateways import ERAS, gateway_over, host_of
from tests.surfaces.mcp.test_gateway import CALLS, demo, plain, words

TRANSPORTS = tuple(PATHS)
SECRET = "t0p-secret"


def _directly(spec: ServerSpec, era: str) -> Client:
    way = sse_client(spec.url) if spec.transport == "sse" else spec.url
    return Client(way, mode=era)


@pytest.mark.parametrize(
    ("transport", "era"), [("http", "legacy"), ("http", "2026-07-28"), ("sse", "legacy")]
)
def test_what_comes_over_an_address_is_what_the_server_gave(transport: str, era: str) -> None:
    async def main() -> None:
        async with listening(app_of(demo(), transport)) as url:
            spec = at(url, transport)
            async with (
                _directly(spec, era) as direct,
                gateway_over([spec], listing="all", window=10_000) as gateway,
                host_of(gateway, era) as host,
            ):
                await host.list_tools()
                for name, arguments in CALLS:  # isError and structuredContent among them
                    before = await direct.call_tool(name, arguments)
                    assert plain(await host.call_tool(name, arguments)) == plain(before), name
                cited = await host.call_tool("log", {"lines": 400})
                (ref,) = (cited.meta or {})["holdfast/refs"]
                stored = await gateway.engine.store.get(gateway.engine.scope, ref)
                assert stored is not None
                assert stored.data.decode() == words(await direct.call_tool("log", {"lines": 400}))

    asyncio.run(main())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_result_of_megabytes_comes_over_an_address(transport: str) -> None:
    """The SDK's own bound of an event is one mebibyte; ours is a setting."""

    async def main() -> None:
        async with (
            listening(app_of(demo(), transport)) as url,
            gateway_over([at(url, transport)], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            result = await host.call_tool("log", {"lines": 34_000})
            assert not result.is_error, words(result)
            (ref,) = (result.meta or {})["holdfast/refs"]
            stored = await gateway.engine.store.get(gateway.engine.scope, ref)
            assert stored is not None
            assert len(stored.data) > 2**20

    asyncio.run(main())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_message_over_the_bound_ends_the_call_and_not_the_gateway(transport: str) -> None:
    async def main() -> None:
        async with (
            listening(app_of(demo(), transport)) as url,
            gateway_over([at(url, transport)], listing="all", most_bytes=50_000) as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            call = host.call_tool("log", {"lines": 5_000})
            result = await asyncio.wait_for(call, 30)
            assert result.is_error
            assert (result.meta or {})["holdfast/error"]["kind"] == "gone"
            again = await host.call_tool("echo", {"text": "still here"})
            assert words(again) == "still here"

    asyncio.run(main())


@pytest.mark.parametrize(("transport", "era"), [("http", e) for e in ERAS] + [("sse", "legacy")])
def test_a_cancelled_call_ends_at_a_server_at_an_address(transport: str, era: str) -> None:
    async def main() -> None:
        server, ended, began = demo(), asyncio.Event(), asyncio.Event()

        @server.tool()
        async def forever() -> str:
            """Waits until it is cancelled."""
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return "never"

        async with (
            listening(app_of(server, transport)) as url,
            gateway_over([at(url, transport)], listing="all") as gateway,
            host_of(gateway, era) as host,
        ):
            await host.list_tools()
            call = asyncio.ensure_future(host.call_tool("forever", {}))
            await asyncio.wait_for(began.wait(), 30)
            call.cancel()
            await asyncio.wait_for(ended.wait(), 30)
            assert words(await host.call_tool("echo", {"text": "still here"})) == "still here"

    asyncio.run(main())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_changed_list_of_a_server_at_an_address_is_told(transport: str) -> None:
    async def main() -> None:
        told = asyncio.Event()

        async def hear(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                told.set()

        async with (
            listening(app_of(demo(), transport)) as url,
            gateway_over([at(url, transport)], listing="all") as gateway,
            host_of(gateway, message_handler=hear) as host,
        ):
            before = {tool.name for tool in (await host.list_tools()).tools}
            await host.call_tool("grow", {})
            await asyncio.wait_for(told.wait(), 30)
            after = {tool.name for tool in (await host.list_tools()).tools}
            assert after - before == {"grown"}

    asyncio.run(main())


def test_a_server_that_has_forgotten_our_session_is_asked_in_a_new_one() -> None:
    """It was started anew, perhaps; nothing of the call was done."""

    async def main() -> None:
        app = Forgetful(app_of(demo(), "http"))
        async with (
            listening(app) as url,
            gateway_over([at(url)], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            assert words(await host.call_tool("echo", {"text": "one"})) == "one"
            app.forget()
            assert words(await host.call_tool("echo", {"text": "two"})) == "two"
            assert gateway.upstreams["demo"].starts == 2

    asyncio.run(main())


# --- what is secret ------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_headers_go_to_their_own_server_and_are_shown_nowhere(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> str:
        ours, others = Seen(app_of(demo(), transport)), Seen(app_of(demo(), transport))
        async with listening(ours) as url, listening(others) as other_url:
            headers = {"Authorization": f"Bearer {SECRET}", "X-Key": SECRET}
            specs = [
                at(url, transport, "ours", headers=headers),
                at(other_url, transport, "others"),
            ]
            async with (
                gateway_over(specs, listing="all") as gateway,
                host_of(gateway) as host,
            ):
                tools = await host.list_tools()
                results = [await host.call_tool(f"{name}__fail", {}) for name in ("ours", "others")]
                shown = repr((specs, tools, results, gateway.reports({})))
        assert SECRET in ours.values
        assert SECRET not in others.values
        return shown

    caplog.set_level(logging.WARNING)
    shown = asyncio.run(main())
    assert SECRET not in shown
    assert SECRET not in caplog.text


def test_a_token_of_a_host_is_not_handed_on() -> None:
    """Headers of a host are for the gateway only."""

    async def main() -> None:
        server = Seen(app_of(demo(), "http"))
        async with (
            listening(server) as url,
            gateway_over([at(url)], listing="all") as gateway,
        ):
            app = http_app(gateway_server(gateway), Settings(serve_token=SECRET))
            async with (
                listening(app) as front,
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {SECRET}"}) as http,
                Client(streamable_http_client(f"{front}/mcp", http_client=http)) as host,
            ):
                await host.list_tools()
                assert words(await host.call_tool("echo", {"text": "hello"})) == "hello"
        assert server.headers
        assert SECRET not in server.values

    asyncio.run(main())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_redirect_to_another_server_is_not_followed(transport: str) -> None:
    async def main() -> None:
        elsewhere = Seen(app_of(demo(), transport))
        async with (
            listening(elsewhere) as target,
            listening(redirecting(target + PATHS[transport])) as url,
            gateway_over([at(url, transport, headers={"X-Key": SECRET})], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            assert gateway.upstreams["demo"].state == "failed"
            assert "redirects to another server" in gateway.upstreams["demo"].reason
        assert elsewhere.headers == []

    asyncio.run(main())


def test_a_redirect_within_a_server_is_followed() -> None:
    """Servers below a mount redirect `/mcp` to `/mcp/`."""

    async def main() -> None:
        server = demo()
        inner = server.streamable_http_app(streamable_http_path="/")
        app = Starlette(
            routes=[Mount("/mcp", inner)], lifespan=lambda _: server.session_manager.run()
        )
        async with (
            listening(app) as url,
            gateway_over([at(url)], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            assert words(await host.call_tool("echo", {"text": "hello"})) == "hello"

    asyncio.run(main())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("status", "reason"), [(401, "credentials (HTTP 401)"), (403, "credentials"), (500, "")]
)
def test_a_server_that_refuses_us_is_failed_with_the_reason(
    transport: str, status: int, reason: str
) -> None:
    async def main() -> None:
        async with (
            listening(answering(status, b'{"secret": "words of the server"}')) as url,
            gateway_over([at(url, transport)], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            upstream = gateway.upstreams["demo"]
            assert upstream.state == "failed"
            assert reason in upstream.reason
            assert "words of the server" not in upstream.reason

    asyncio.run(main())


def test_a_server_that_talks_nonsense_is_not_quoted_in_logs(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with (
            listening(answering(200, b'{"jsonrpc": "2.0", "words": "t0p-secret"}')) as url,
            gateway_over([at(url)], listing="all") as gateway,
            host_of(gateway) as host,
        ):
            await host.list_tools()
            assert gateway.upstreams["demo"].state == "failed"

    asyncio.run(main())
    assert SECRET not in caplog.text
    assert SECRET not in capfd.readouterr().err
