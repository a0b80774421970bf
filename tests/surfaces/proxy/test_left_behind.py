"""Objects of finished requests are freed at once, and do not wait for the garbage collector.

A full collection waits until no request is under way (server.py explains why). An object that lives
as long as an answer takes and is part of a cycle would stay until then: 9 KB for each connection,
and with a count of a megabyte eleven of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import weakref
import zlib
from asyncio.selector_events import _SelectorTransport  # type: ignore[attr-defined]
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from urllib.parse import urlsplit

import pytest

from holdfast.engine import live
from holdfast.errors import StoreUnavailableError
from holdfast.surfaces.proxy import heap, recent, tenants
from holdfast.surfaces.proxy.heap import free_closed_transports
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    KEYS,
    Running,
    ask,
    ask_model,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import opens, says, text
from tests.surfaces.proxy.test_across import across
from tests.surfaces.proxy.upstream import PATIENCE, Upstream

ROUNDS = 5
OURS = ("holdfast.", "uvicorn.", "h11.")
ANSWER = says(text("All is well."))

Send = Callable[[Running, bytes], None]
"""A client's handling of a request."""


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
    """Return the types of the proxy among the garbage."""
    kinds = (f"{type(each).__module__}.{type(each).__qualname__}" for each in garbage)
    return Counter(kind for kind in kinds if kind.startswith(OURS))


def requests(dialect: str, *results: str, stream: bool = False) -> list[bytes]:
    """Return requests, the first one for loading; created beforehand, because serialising leaves
    garbage.
    """
    questions = (f"What of number {n}?" for n in range(ROUNDS + 1))
    return [request_in(dialect, chat(*results, question=q), stream=stream) for q in questions]


def left_by(proxy: Running, send: Send, bodies: list[bytes]) -> list[object]:
    """Return the garbage of all requests but the first."""
    first, *others = bodies
    send(proxy, first)
    proxy.settled()
    with left_to_the_collector() as garbage:
        for body in others:
            send(proxy, body)
            proxy.settled()
        proxy.do(asyncio.sleep(0))  # the last connection ends in the loop's next step
    return garbage


def asks(proxy: Running, body: bytes) -> None:
    assert ask_model(proxy, "openai-chat", body).status == 200


def leaves_before_its_answer(proxy: Running, body: bytes) -> None:
    address = urlsplit(proxy.url)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\n"
    head += f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as client:
        client.sendall(head.encode() + body)
        client.shutdown(socket.SHUT_WR)  # which the proxy takes for its end, and closes
        while client.recv(65_536):
            pass


def counts(proxy: Running, body: bytes) -> None:
    assert ask(f"{proxy.url}/v1/messages/count_tokens", body, KEYS).status == 200


# --- connections ---------------------------------------------------------------------------------


@pytest.mark.parametrize("send", [asks, leaves_before_its_answer])
def test_a_closed_connection_is_gone(proxy: Running, send: Send) -> None:
    assert ours(left_by(proxy, send, requests("openai-chat", "short", stream=True))) == {}


def test_a_closed_connection_to_an_upstream_is_gone(
    proxy: Running, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "_call_connection_lost"
    monkeypatch.setattr(_SelectorTransport, name, getattr(_SelectorTransport, name))  # in the end
    free_closed_transports()
    bodies = requests("openai-chat", "short", stream=True)
    garbage = left_by(proxy, leaves_before_its_answer, bodies)
    transports = [each for each in garbage if isinstance(each, asyncio.Transport)]
    ends = [transport.get_extra_info("peername") or ("", 0) for transport in transports]
    assert urlsplit(upstream.url).port not in [port for _, port in ends]


# --- requests ------------------------------------------------------------------------------------


def test_a_request_that_is_only_counted_is_gone(proxy: Running) -> None:
    assert ours(left_by(proxy, counts, requests("anthropic", "short", log(900)))) == {}


def test_what_is_counted_of_a_session_stays_known(proxy: Running) -> None:
    body = request_in("anthropic", chat("short", question="What is known?"))
    answered = ask(f"{proxy.url}/v1/messages", body, KEYS)
    proxy.settled()
    state = proxy.service.engine.session(answered.headers["x-holdfast-session"]).state
    assert state is not None
    notes = [len(message.notes) for message in state.asked.messages]
    counts(proxy, body)
    assert [len(message.notes) for message in state.asked.messages] == notes


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_model_opens_is_gone_with_its_answer(
    proxy: Running, upstream: Upstream, stream: bool
) -> None:
    bodies = requests("openai-chat", log(900), stream=stream)
    upstream.turns.extend([opens("1-5"), ANSWER] * len(bodies))
    assert ours(left_by(proxy, asks, bodies)) == {}
    assert not upstream.turns


def test_a_history_that_a_session_goes_on_from_no_more_is_gone(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "_MOST_BEGINNINGS", 1)

    def begins_anew(proxy: Running, body: bytes) -> None:
        named = KEYS | {"x-holdfast-session": "the only one"}
        assert ask_model(proxy, "openai-chat", body, headers=named).status == 200

    assert ours(left_by(proxy, begins_anew, requests("openai-chat", "short", log(900)))) == {}


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_in_another_dialect_is_gone_when_it_is_sent(stream: bool) -> None:
    bodies = requests("openai-chat", "short", stream=stream)
    with across("anthropic", *[ANSWER] * len(bodies)) as (proxy, _):
        assert ours(left_by(proxy, asks, bodies)) == {}


def turns(number: int) -> bytes:
    """The requests of one conversation, a line for each."""
    body = chat(f"short {number}", question=f"What of number {number}?")
    lines = []
    for n in range(5):
        lines.append(request_in("openai-chat", body))
        called = json.dumps(body["messages"][1:3]).replace("call_", f"call_{n}_")
        more = [*json.loads(called), {"role": "user", "content": f"And {n}?"}]
        body = {**body, "messages": [*body["messages"], *more]}
    return b"\n".join(lines)


def talks(proxy: Running, lines: bytes) -> None:
    for body in lines.splitlines():
        asks(proxy, body)


def test_a_session_that_is_forgotten_is_gone(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its messages were read anew: a first request of few bytes is not recognised."""
    monkeypatch.setattr(live, "_MOST_SESSIONS", 1)
    monkeypatch.setattr(recent, "_MOST_BEGINNINGS", 1)
    conversations = [turns(n) for n in range(ROUNDS + 1)]
    assert conversations[0].index(b"\n") < recent._BEGINNING
    assert ours(left_by(proxy, talks, conversations)) == {}


def test_a_tenant_that_is_let_go_is_gone(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, "_MOST_ENGINES", 1)
    monkeypatch.setattr(live, "_MOST_SESSIONS", 1)

    def each_with_its_own_key(proxy: Running, body: bytes) -> None:
        key = {"authorization": f"Bearer {KEY}{zlib.crc32(body)}"}
        assert ask_model(proxy, "openai-chat", body, headers=key).status == 200

    bodies = requests("openai-chat", "short")
    settings = {"background_jobs": False, "tenant_by": "key"}
    with running_proxy(settings, upstream.url) as proxy:
        assert ours(left_by(proxy, each_with_its_own_key, bodies)) == {}


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_breaks_off_is_gone(
    proxy: Running, upstream: Upstream, stream: bool
) -> None:
    def hears_half(proxy: Running, body: bytes) -> None:
        with pytest.raises((HTTPException, OSError)):
            ask_model(proxy, "openai-chat", body)

    bodies = requests("openai-chat", "short", stream=stream)
    upstream.turns.extend([faults.reset_midway] * len(bodies))
    assert ours(left_by(proxy, hears_half, bodies)) == {}


def test_a_request_that_the_store_failed_is_gone(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("the store is away", where="here", fix="Wait.")

    monkeypatch.setattr(type(proxy.service.engine.store), "session_with_head", away)
    assert ours(left_by(proxy, asks, requests("openai-chat", "short"))) == {}


def test_a_request_that_cannot_be_made_to_fit_is_gone(proxy: Running) -> None:
    """Also the last turn that was tried for it, and counted."""

    def is_refused(proxy: Running, body: bytes) -> None:
        small = KEYS | {"x-holdfast-budget": "20"}
        assert ask_model(proxy, "openai-chat", body, headers=small).status == 400

    assert ours(left_by(proxy, is_refused, requests("openai-chat", "short"))) == {}


# --- the collector -------------------------------------------------------------------------------


class Cycle:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_once_nothing_has_been_under_way_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heap, "_YOUNG_COLLECTIONS", 0)
    gc.disable()
    try:
        left = weakref.ref(Cycle())
        collector = heap.IdleCollector()
        for _ in range(3):
            for _ in range(heap._IDLE_TICKS - 1):
                collector.tick(is_idle=True)
            collector.tick(is_idle=False)
        assert left() is not None
        for _ in range(heap._IDLE_TICKS):
            collector.tick(is_idle=True)
        assert left() is None
    finally:
        gc.enable()


def test_an_idle_proxy_without_new_objects_does_not_collect() -> None:
    gc.collect()
    gc.disable()
    try:
        left = weakref.ref(Cycle())
        collector = heap.IdleCollector()
        for _ in range(2 * heap._IDLE_TICKS):
            collector.tick(is_idle=True)
        assert left() is not None
    finally:
        gc.enable()
