"""WebSockets are refused at once, so that a client falls back to HTTP in its first second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest
import uvicorn
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from holdfast.surfaces.proxy.server import application, base_url, listen
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import ask, running_proxy
from tests.surfaces.proxy.upstream import Upstream

AS_CODEX_ASKS = {
    "authorization": f"Bearer {KEY}",
    "openai-beta": "responses_websockets=2026-02-06",
}


def refusal_of(url: str, headers: Mapping[str, str] = AS_CODEX_ASKS) -> InvalidStatus:
    """Return the refusal that a WebSocket client gets."""
    address = url.replace("http://", "ws://") + "/v1/responses"
    with pytest.raises(InvalidStatus) as refused, connect(address, additional_headers=headers):
        pass
    return refused.value


def test_a_websocket_is_refused_with_426_and_nothing_goes_upstream() -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        answer = refusal_of(proxy.url).response
        assert answer.status_code == 426
        assert answer.headers["upgrade"] == "HTTP/1.1"
        assert b"HTTP POST" in (answer.body or b"")
        assert upstream.requests == []


def test_aiohttps_client_is_told_the_same() -> None:
    async def status(url: str) -> int:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(url, headers=AS_CODEX_ASKS)
        return refused.value.status

    with running_proxy() as proxy:
        assert asyncio.run(status(f"{proxy.url}/v1/responses")) == 426


def test_an_upgrade_to_something_else_is_not_asked_for_by_a_client_that_would_take_http() -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        offers = {"connection": "upgrade, http2-settings", "upgrade": "h2c", **AS_CODEX_ASKS}
        answered = ask(f"{proxy.url}/v1/models", headers=offers)
        assert answered.status == 200
        [passed] = upstream.requests
        assert "Upgrade" not in passed.headers


def test_who_may_not_ask_is_not_told_what_the_proxy_speaks() -> None:
    with running_proxy({"serve_token": "tok"}) as proxy:
        assert refusal_of(proxy.url, {}).response.status_code == 401


@contextmanager
def served_with_websockets() -> Iterator[str]:
    """Yield the application on a server that supports WebSockets, as others may run it."""
    with running_proxy() as proxy, listen(proxy.service.settings) as listener:
        config = uvicorn.Config(
            application(proxy.service),
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            log_level="critical",
        )
        server = uvicorn.Server(config)
        server.capture_signals = _no_signals  # type: ignore[method-assign]  # not the main thread
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield base_url(listener)
        finally:
            server.should_exit = True
            thread.join(timeout=30)


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


def test_a_server_that_has_websockets_refuses_them_in_the_same_words() -> None:
    with served_with_websockets() as url:
        answer = refusal_of(url).response
        assert answer.status_code == 426
        assert b"HTTP POST" in (answer.body or b"")


def test_a_server_that_cannot_say_so_closes_the_websocket() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    with running_proxy() as proxy:
        scope = {
            "type": "websocket",
            "path": "/v1/responses",
            "headers": [(b"host", b"127.0.0.1")],
        }
        proxy.do(application(proxy.service)(scope, receive, send))
    assert sent == [{"type": "websocket.close"}]
