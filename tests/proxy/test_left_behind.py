"""What requests leave behind is free at once, and does not wait for the garbage collector.

A full collection comes once in some 100,000 requests (server.py says why). What lives for as long
as an answer takes and then refers to itself would stay until then: 9 KB for each connection, and
with a count of a megabyte eleven of them.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from asyncio.selector_events import _SelectorTransport  # type: ignore[attr-defined]
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from holdfast.surfaces.proxy.heap import free_closed_transports
from tests.fitting.test_citing import chat
from tests.proxy.gatekeeper import KEY
from tests.proxy.harness import Running, ask, path_of, request_in, running_proxy
from tests.proxy.spoken import says, text
from tests.proxy.upstream import PATIENCE, Upstream

ROUNDS = 5
OURS = ("holdfast.", "uvicorn.", "h11.")
KEYS = {"authorization": f"Bearer {KEY}", "x-api-key": KEY, "anthropic-version": "2023-06-01"}
ANSWER = says(text("All is well."))

Client = Callable[[Running, str], None]
"""What a client does; the text is another one each time."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        running.always = ANSWER
        yield running


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({"background_jobs": False}, upstream.url) as running:
        yield running


@contextmanager
def left_to_the_collector() -> Iterator[list[object]]:
    """What only the collector could free of all that was done meanwhile."""
    garbage: list[object] = []
    gc.collect()
    gc.disable()
    try:
        yield garbage
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        garbage += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def ours(garbage: list[object]) -> Counter[str]:
    """The kinds of things among it that the proxy is made of."""
    kinds = (f"{type(each).__module__}.{type(each).__qualname__}" for each in garbage)
    return Counter(kind for kind in kinds if kind.startswith(OURS))


def asks(proxy: Running, words: str) -> None:
    body = request_in("openai-chat", chat("short", question=words))
    assert ask(proxy.url + path_of("openai-chat"), body, KEYS).status == 200


def leaves_before_its_answer(proxy: Running, words: str) -> None:
    address = urlsplit(proxy.url)
    body = request_in("openai-chat", chat("short", question=words), stream=True)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\n"
    head += f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as client:
        client.sendall(head.encode() + body)
        client.shutdown(socket.SHUT_WR)  # which the proxy takes for its end, and closes
        while client.recv(65_536):
            pass


@pytest.mark.parametrize("client", [asks, leaves_before_its_answer])
def test_a_closed_connection_is_gone(proxy: Running, client: Client) -> None:
    client(proxy, "What is loaded once?")
    with left_to_the_collector() as garbage:
        for n in range(ROUNDS):
            client(proxy, f"What of {n}?")
        proxy.settled()
        proxy.do(asyncio.sleep(0))  # the last connection ends in the loop's next step
    assert ours(garbage) == {}


def test_a_closed_connection_to_an_upstream_is_gone(
    proxy: Running, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to_upstream(garbage: list[object]) -> int:
        """How many transports are the proxy's side of a connection to it."""
        transports = [each for each in garbage if isinstance(each, asyncio.Transport)]
        ports = [(transport.get_extra_info("peername") or ("", 0))[1] for transport in transports]
        return ports.count(urlsplit(upstream.url).port)

    name, transport = "_call_connection_lost", _SelectorTransport
    monkeypatch.setattr(transport, name, getattr(transport, name))  # to be as before in the end
    free_closed_transports()
    with left_to_the_collector() as garbage:
        for n in range(ROUNDS):
            leaves_before_its_answer(proxy, f"What of {n}?")
            proxy.settled()
        proxy.do(asyncio.sleep(0))
    assert to_upstream(garbage) == 0
