"""An upstream that disconnects: the client gets the same result with and without the proxy.

Each cut runs twice with the providers' own clients, directly and through the proxy: the same class
of exception, or the same partial answer, so that code that recovers directly recovers here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from http.client import IncompleteRead
from typing import Any

import pytest

from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import Running
from tests.surfaces.proxy.harness import ask as ask_plainly
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.talking import anthropic, genai, openai
from tests.surfaces.proxy.upstream import Upstream

WORDS = "What now?"
Asking = Callable[..., str]


_clients: list[Any] = []


@cache
def openai_client(url: str, retries: int) -> openai.OpenAI:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=retries)
    _clients.append(client)
    return client


@cache
def anthropic_client(url: str, retries: int) -> anthropic.Anthropic:
    client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=retries)
    _clients.append(client)
    return client


@cache
def gemini_client(url: str) -> genai.Client:
    how: Any = {"base_url": url}
    client = genai.Client(api_key=KEY, http_options=how)
    _clients.append(client)
    return client


def chat(url: str, *, stream: bool, retries: int = 0) -> str:
    client = openai_client(url, retries)
    asked: Any = {"model": "gpt-5", "messages": [{"role": "user", "content": WORDS}]}
    if not stream:
        return client.chat.completions.create(**asked).choices[0].message.content or ""
    chunks: Any = client.chat.completions.create(**asked, stream=True)
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def responses(url: str, *, stream: bool, retries: int = 0) -> str:
    client = openai_client(url, retries)
    if not stream:
        return client.responses.create(model="gpt-5", input=WORDS).output_text
    events: Any = client.responses.create(model="gpt-5", input=WORDS, stream=True)
    return "".join(e.delta for e in events if e.type == "response.output_text.delta")


def responses_helper(url: str, *, stream: bool, retries: int = 0) -> str:
    client = openai_client(url, retries)
    assert stream
    with client.responses.stream(model="gpt-5", input=WORDS) as events:
        for _ in events:
            pass
        return events.get_final_response().output_text


def messages(url: str, *, stream: bool, retries: int = 0) -> str:
    client = anthropic_client(url, retries)
    asked: Any = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": WORDS}],
    }
    if not stream:
        return "".join(block.text for block in client.messages.create(**asked).content)
    with client.messages.stream(**asked) as events:
        return "".join(events.text_stream)


def gemini(url: str, *, stream: bool) -> str:
    client = gemini_client(url)
    if not stream:
        made = client.models.generate_content(model="gemini-2.5-flash", contents=WORDS)
        return made.text or ""
    pieces = client.models.generate_content_stream(model="gemini-2.5-flash", contents=WORDS)
    return "".join(piece.text or "" for piece in pieces)


CLIENTS: dict[str, Asking] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
    "gemini": gemini,
}
STREAMING = CLIENTS | {"responses helper": responses_helper}
CUTS = {
    "no status": faults.reset,
    "before the first event": faults.reset_before_the_first_event,
    "inside an event": faults.reset_inside_an_event,
    "after some events": faults.reset_midway,
    "in order, before the first event": faults.empty,
    "in order, inside an event": faults.truncated,
    "in order, after some events": faults.cut_between_events,
}


@pytest.fixture(scope="module", autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    for client in _clients:
        client.close()


@pytest.fixture(autouse=True)
def _nothing_left_of_the_last(upstream: Upstream) -> None:
    upstream.turns.clear()
    upstream.requests.clear()


def outcome(ask: Asking, url: str, **how: Any) -> str | type[BaseException]:
    """Return a client's result: an answer, or the class of its exception."""
    try:
        return ask(url, **how)
    except Exception as error:  # noqa: BLE001 - whatever this client raises is what we compare
        return type(error)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("client", STREAMING)
def test_a_cut_stream_is_the_same_directly_and_through_the_proxy(
    proxy: Running, upstream: Upstream, client: str, cut: str
) -> None:
    upstream.turns.extend([CUTS[cut], CUTS[cut]])
    directly = outcome(STREAMING[client], upstream.url, stream=True)
    through = outcome(STREAMING[client], proxy.url, stream=True)
    assert through == directly
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("cut", ["no status", "after some events"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_cut_answer_is_the_same_directly_and_through_the_proxy(
    proxy: Running, upstream: Upstream, client: str, cut: str
) -> None:
    upstream.turns.extend([CUTS[cut], CUTS[cut]])
    directly = outcome(CLIENTS[client], upstream.url, stream=False)
    assert isinstance(directly, type)
    assert outcome(CLIENTS[client], proxy.url, stream=False) is directly


@pytest.mark.parametrize("cut", ["no status", "after some events"])
@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_a_client_that_tries_again_recovers(
    proxy: Running, upstream: Upstream, client: str, cut: str
) -> None:
    for url in (upstream.url, proxy.url):
        upstream.requests.clear()
        upstream.turns.extend([CUTS[cut], says(text("Here I am."))])
        assert CLIENTS[client](url, stream=False, retries=1) == "Here I am."
        assert len(upstream.requests) == 2


@pytest.mark.parametrize("client", ["chat", "messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_by_the_network_is_a_connection_error(
    proxy: Running, upstream: Upstream, client: str, stream: bool
) -> None:
    upstream.turns.extend([faults.reset_by_the_network] * 2)
    directly = outcome(CLIENTS[client], upstream.url, stream=stream)
    assert directly in (openai.APIConnectionError, anthropic.APIConnectionError)
    assert outcome(CLIENTS[client], proxy.url, stream=stream) is directly


def test_an_array_that_ends_too_early_is_not_closed(proxy: Running, upstream: Upstream) -> None:
    """Gemini's other way to stream: with its last bracket it would pass for a whole answer."""
    upstream.turns.append(faults.cut_between_events)
    url = f"{proxy.url}/v1beta/models/gemini-2.5-flash:streamGenerateContent"
    body = b'{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}'
    with pytest.raises(IncompleteRead) as broken:
        ask_plainly(url, body, {"x-goog-api-key": KEY})
    assert broken.value.partial.startswith(b"[")
    assert not broken.value.partial.rstrip().endswith(b"]")


def test_a_cut_is_logged_with_its_place_and_counted_as_a_failure(
    proxy: Running, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="holdfast")
    upstream.turns.append(faults.reset)
    assert outcome(chat, proxy.url, stream=False) is openai.APIConnectionError
    proxy.settled()
    records: list[Any] = [record.msg for record in caplog.records if record.name.startswith("hold")]
    [told] = [fields for fields in records if fields["event"] == "broke_off"]
    assert told["upstream"] == upstream.url.removeprefix("http://")
    assert told["why"] == "the upstream closed the connection without an answer"
    [line] = [fields for fields in records if fields["event"] == "request"]
    assert (line["status"], line["error"]) == (502, "BrokenOffError")


def test_a_server_that_cannot_hang_up_answers_502(proxy: Running, upstream: Upstream) -> None:
    """Behind another ASGI server, an answer is the best there is."""
    from holdfast.surfaces.proxy.server import application  # noqa: PLC0415

    upstream.turns.append(faults.reset)
    sent: list[Any] = []
    body = b'{"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}'
    received = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        return received.pop() if received else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {KEY}".encode())],
    }
    proxy.do(application(proxy.service)(scope, receive, send))
    assert sent[0]["status"] == 502
    assert upstream.url.removeprefix("http://").encode() in sent[1]["body"]
