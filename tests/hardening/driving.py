"""The proxy's application, called without a socket: one request after another, each checked.

An era is one proxy; its state ends with it, so that leaks of the process show.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from holdfast.engine import Holdfast
from holdfast.settings import Settings
from holdfast.surfaces.proxy.offline import OfflineSending
from holdfast.surfaces.proxy.server import application
from holdfast.surfaces.proxy.service import Service
from tests.hardening.asks import Asked
from tests.hardening.provider import Provider
from tests.hardening.shapes import refused
from tests.surfaces.proxy.harness import with_families
from tests.wire.responses.streams import understand

PATIENCE_SECONDS = 120.0
"""After so long an answer will never come."""

_TYPED = frozenset(range(400, 500))


@dataclass
class Answer:
    """The response for a client."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False


class Complaints(logging.Handler):
    """Log records that report a fault of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        event = record.msg.get("event") if isinstance(record.msg, dict) else record.getMessage()
        if record.exc_info or record.levelno >= logging.ERROR or event in ("bug", "not_written"):
            self.lines.append(f"log: {record.getMessage()}")


class Era:
    """A running proxy without a socket."""

    def __init__(self, service: Service, provider: Provider) -> None:
        self.service = service
        self.provider = provider
        self._app: ASGIApp = application(service)
        self._complaints = Complaints()
        self.begun = False
        """Whether the answer to the last request has begun."""
        self.at_end: Callable[[], Awaitable[None]] = _nothing
        """Called when the last piece of a response is sent, before its client has it."""

    async def judged(self, asked: Asked, chance: random.Random) -> tuple[Answer, list[str]]:
        """Send a request, and return its response with the violations."""
        self.provider.begin(chance)
        logger = logging.getLogger()
        logger.addHandler(self._complaints)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await self._answer(asked, chance)
                await self.service.drain()
        except Exception as error:  # noqa: BLE001 - whatever comes out of the application
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            return Answer(), [f"{type(error).__name__} at {where} came out of the application"]
        finally:
            logger.removeHandler(self._complaints)
        logged, self._complaints.lines = self._complaints.lines, []
        return answer, [*logged, *complaints(asked, answer, self.provider)]

    async def asked(self, asked: Asked) -> Answer:
        """Ask, and wait until the request is recorded."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await self._answer(asked, random.Random(0))
            await self.service.drain()
        return answer

    async def _answer(self, asked: Asked, chance: random.Random) -> Answer:
        answer = Answer()
        self.begun = False
        pieces = _pieces(asked.body, chance)
        over = asyncio.Event()

        async def receive() -> MutableMapping[str, Any]:
            if not pieces:
                await over.wait()
                return {"type": "http.disconnect"}
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                assert not answer.status, "an answer begins once"
                answer.status = message["status"]
                self.begun = True
                answer.headers = {
                    name.decode("latin-1"): value.decode("latin-1")
                    for name, value in message["headers"]
                }
            else:
                answer.body += message.get("body", b"")
                if answer.body and asked.path.endswith("/live"):
                    over.set()  # it has no end: the viewer of the page closes it
                answer.is_whole = not message.get("more_body", False)
                if answer.is_whole:
                    await self.at_end()

        await self._app(_scope(asked), receive, send)
        over.set()
        return answer


async def _nothing() -> None:
    """Nobody waits for the end."""


@asynccontextmanager
async def era(
    *,
    clock: Callable[[], float] = time.time,
    provider: Provider | None = None,
    **overrides: Any,
) -> AsyncIterator[Era]:
    """Yield a proxy with a store in memory, and stop it in order."""
    entries = with_families(overrides.get("upstreams", {}), "http://provider.test")
    # Many citations: most failures involve them.
    chosen = {"store_url": "memory:", "cite_policy": "always"} | overrides
    settings = Settings(**(chosen | {"upstreams": entries}))
    async with Holdfast.open(settings=settings, clock=clock) as engine:
        provider = provider or Provider()
        service = Service(engine, settings, provider, OfflineSending())
        asyncio.get_running_loop().set_exception_handler(service.contain)
        try:
            yield Era(service, provider)
        finally:
            await service.health.close()
            await service.drain()


def _pieces(body: bytes, chance: random.Random) -> list[bytes]:
    if len(body) < 2 or chance.random() < 0.8:
        return [body]
    middle = chance.randrange(1, len(body))
    return [body[:middle], body[middle:]]


def _scope(asked: Asked) -> dict[str, Any]:
    """A request as uvicorn hands it on."""
    raw_path, _, query = asked.target.partition("?")
    headers = asked.headers
    if asked.body and not {b"content-length", b"transfer-encoding"} & {name for name, _ in headers}:
        # Without either there would be no body on a connection.
        headers = [*headers, (b"content-length", b"%d" % len(asked.body))]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 8787),
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
        "method": asked.method,
        "root_path": "",
        "path": asked.path,
        "raw_path": raw_path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "headers": headers,
        "state": {},
    }


# --- what an answer may be -----------------------------------------------------------------------


def complaints(asked: Asked, answer: Answer, provider: Provider) -> list[str]:
    """Return the violations in a response."""
    wrong = list(_form(answer))
    if answer.status >= 500:
        wrong.append(f"status {answer.status}: {answer.body[:300]!r}")
    is_asked = asked.method == "POST" and bool(provider.sent) and provider.sent[0].dialect
    if answer.status in _TYPED and asked.path.startswith("/v1") and not _is_typed(answer):
        wrong.append(f"an error without a type: {answer.status} {answer.body[:100]!r}")
    if is_asked and answer.status == 200 and not _is_understood(answer, provider):
        wrong.append(f"an answer that no client understands: {answer.body[:300]!r}")
    if is_asked and provider.refused and not _was_refused_before(asked, provider):
        wrong.append(f"valid when it came, refused when it went out: {provider.refused[0][:300]}")
    return wrong


def _form(answer: Answer) -> list[str]:
    """Complaints about the answer as HTTP."""
    wrong = []
    if not answer.status or not answer.is_whole:
        wrong.append("no whole answer")
    for name, value in answer.headers.items():
        if any(ord(letter) < 32 and letter != "\t" for letter in name + value):
            wrong.append(f"a control character in the header {name}")
    length = answer.headers.get("content-length")
    if length is not None and answer.body and int(length) != len(answer.body):
        wrong.append("the content-length is not the body's")
    return wrong


def _is_typed(answer: Answer) -> bool:
    """Whether an error is one that a provider's client can raise."""
    try:
        value = json.loads(answer.body)
    except ValueError:
        return False
    error = value.get("error") if isinstance(value, dict) else None
    return isinstance(error, dict) and isinstance(error.get("message"), str)


def _is_understood(answer: Answer, provider: Provider) -> bool:
    kind = answer.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        try:
            understand(answer.body, provider.sent[0].dialect)
        except (AssertionError, ValueError, KeyError):
            return False
        return True
    try:
        json.loads(answer.body)
    except ValueError:
        return False
    return True


def _was_refused_before(asked: Asked, provider: Provider) -> bool:
    """Whether the client's own body would have been refused: then it was not us."""
    if asked.header(b"content-encoding"):
        return True
    return bool(refused(provider.sent[0].dialect, provider.sent[0].path, asked.body))
