"""A proxy under test: the real application on a free port, in a thread of this process."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from holdfast.settings import Settings, UpstreamEntry
from holdfast.store.records import Turn
from holdfast.surfaces.proxy.server import Server, base_url, listen, opened
from holdfast.surfaces.proxy.service import Service
from holdfast.wire.responses import EventParser
from tests.fitting.test_citing import in_dialect
from tests.surfaces.proxy.gatekeeper import KEY

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
FAMILIES = ("openai", "anthropic", "gemini", "bedrock", "cohere")
PASSING = ("converse", "cohere")
"""Dialects whose answers pass as they come."""
KEYS = {
    "authorization": f"Bearer {KEY}",
    "x-api-key": KEY,
    "x-goog-api-key": KEY,
    "anthropic-version": "2023-06-01",
}
"""Request headers that the upstream accepts in every dialect."""
DRAIN_SECONDS = 10
"""For responses that a test leaves open: it is not to wait ten minutes for them."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Running:
    """A proxy that listens."""

    url: str
    """Its address, without a slash at the end."""
    service: Service
    loop: asyncio.AbstractEventLoop
    server: Server

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something in the proxy's own loop, such as to ask its store."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    def settled(self) -> None:
        """Wait until all that was answered is written down."""
        self.do(self.service.drain())


def with_families(
    entries: Mapping[str, UpstreamEntry], url: str | None
) -> dict[str, UpstreamEntry]:
    """Return the entries with all families at one address, except those with their own."""
    families = {family: UpstreamEntry(url) for family in FAMILIES if url is not None}
    for name, entry in entries.items():
        family = families.get(name)
        families[name] = replace(entry, url=entry.url or family.url) if family else entry
    return families


@contextmanager
def running_proxy(
    settings_overrides: Mapping[str, Any] | None = None, upstream: str | None = None
) -> Iterator[Running]:
    """Run a proxy; `upstream` is the address that all families are sent to.

    Without an upstream the offline model answers. The store is in memory unless `store_url` is
    given.
    """
    # Most tests use one store through `service.engine`; test_tenants.py has keys. And most test
    # citations regardless of savings; test_policy.py tests when they are made.
    chosen: dict[str, Any] = {
        "store_url": "memory:",
        "serve_port": 0,
        "tenant_by": "none",
        "cite_policy": "always",
    }
    chosen |= settings_overrides or {}
    chosen["upstreams"] = with_families(chosen.get("upstreams", {}), upstream)
    settings = Settings(**chosen)
    ready = threading.Event()
    made: list[Running] = []
    failed: list[BaseException] = []

    async def main() -> None:
        with listen(settings) as listener:
            async with opened(settings) as service:
                server = Server(service, ready.set)
                server.config.timeout_graceful_shutdown = DRAIN_SECONDS
                loop = asyncio.get_running_loop()
                made.append(Running(base_url(listener), service, loop, server))
                await server.serve(sockets=[listener])

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001  # handed to the test, which raises it
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(timeout=30)
    try:
        if failed:
            raise failed[0]
        yield made[0]
    finally:
        if made:
            made[0].server.stop()
        thread.join(timeout=30)
    if failed:
        raise failed[0]


class Answered(NamedTuple):
    """The response for a client."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The values of the stream, `[DONE]` left out."""
        parser = EventParser()
        events = parser.feed(self.body)
        assert parser.finish() is None, "the stream broke off inside an event"
        said = [event.data for event in events if event.data is not None]
        return [json.loads(data) for data in said if data != b"[DONE]"]


def ask(
    url: str,
    body: bytes | Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    method: str = "",
    patience: float = 30,
) -> Answered:
    """Send one request, and read the whole answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=patience)
    try:
        data = json.dumps(body) if isinstance(body, Mapping) else body
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(
            method or ("GET" if body is None else "POST"), target, data, dict(headers or {})
        )
        with connection.getresponse() as response:  # it may hold the socket when it breaks off
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, found, response.read())
    finally:
        connection.close()


def path_of(dialect: str, *, stream: bool = False, model: str = "gemini-2.5-flash") -> str:
    """Where a dialect's requests are sent."""
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return {
        "openai-chat": "/v1/chat/completions",
        "openai-responses": "/v1/responses",
        "anthropic": "/v1/messages",
        "gemini": f"/v1beta/models/{model}:{verb}",
        "converse": f"/model/{quote(model, safe='')}/converse{'-stream' * stream}",
        "cohere": "/v2/chat",
    }[dialect]


def request_in(dialect: str, chat_body: dict[str, Any], *, stream: bool = False) -> bytes:
    """A chat request in a dialect, asking for a stream where the body is where one asks."""
    body = json.loads(in_dialect(chat_body, dialect))
    if dialect == "anthropic":
        body.setdefault("max_tokens", 1000)
    if stream and dialect not in ("gemini", "converse"):
        body["stream"] = True
    if stream and dialect == "openai-chat":
        body["stream_options"] = {"include_usage": True}
    return json.dumps(body).encode()


def ask_model(
    proxy: Running,
    dialect: str,
    question: dict[str, Any] | bytes,
    *,
    stream: bool = False,
    headers: Mapping[str, str] = KEYS,
) -> Answered:
    """Send a chat request, or the bytes of one in its dialect, to the proxy and read the answer."""
    body = question if isinstance(question, bytes) else request_in(dialect, question, stream=stream)
    return ask(proxy.url + path_of(dialect, stream=stream), body, headers)


def text_of(dialect: str, answered: Answered, *, stream: bool = False) -> str:
    """The text of an answer."""
    values = answered.events if stream else [answered.json]
    return "".join(piece for value in values for piece in _texts(dialect, value, stream))


def _texts(dialect: str, value: Any, stream: bool) -> Iterator[str]:
    match dialect, stream:
        case "openai-chat", _:
            for choice in value["choices"]:
                yield choice["delta" if stream else "message"].get("content") or ""
        case "openai-responses", True:
            if value["type"] == "response.output_text.delta":
                yield value["delta"]
        case "openai-responses", False:
            for item in value["output"]:
                yield from (part["text"] for part in item.get("content", ()))
        case "anthropic", True:
            if value["type"] == "content_block_delta":
                yield value["delta"].get("text", "")
        case "anthropic", False:
            yield from (block.get("text", "") for block in value["content"])
        case _:
            for candidate in value["candidates"]:
                yield from (part.get("text", "") for part in candidate["content"]["parts"])


def usage_of(dialect: str, answered: Answered, *, stream: bool = False) -> tuple[int, int]:
    """Input and output tokens, as the answer reports them in the end."""
    values = answered.events if stream else [answered.json]
    match dialect:
        case "openai-chat":
            used = next(v["usage"] for v in reversed(values) if v.get("usage"))
            return used["prompt_tokens"], used["completion_tokens"]
        case "openai-responses":
            used = (values[-1]["response"] if stream else values[-1])["usage"]
        case "anthropic":
            used = next(v["usage"] for v in reversed(values) if "usage" in v)
        case _:
            used = values[-1]["usageMetadata"]
            return used["promptTokenCount"], used["candidatesTokenCount"]
    return used["input_tokens"], used["output_tokens"]


def turns_of(proxy: Running, answered: Answered) -> list[Turn]:
    """Return the recorded turns of a response's session."""
    proxy.settled()
    session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
    return proxy.do(proxy.service.engine.store.turns(session.scope))
