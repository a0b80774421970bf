"""The providers' network as a real HTTP server: the outermost edge, and the only double.

It supports OpenAI's two dialects, Anthropic's, Gemini's, Bedrock's and Cohere's, enforces their
rules (gatekeeper.py) and returns a test's script: an answer, a function from the request to an
answer, or a fault (faults.py). It records every request, and callers that leave before their answer
is complete. It never imports the package, so that rules and counts are independent.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.provider.binding import preserves, signed
from tests.provider.prompt_cache import CacheUse, PromptCache
from tests.provider.tokens import text_tokens, vocabulary_of
from tests.surfaces.proxy.gatekeeper import Got, Ledger, error, refusal, thoughts
from tests.surfaces.proxy.spoken import whole
from tests.wire.responses.passing_streams import EVENT_STREAM, cohere_events, converse_events
from tests.wire.responses.streams import Script, write

_PASSING = {"converse": converse_events, "cohere": cohere_events}
PATIENCE = 20.0
"""Seconds until a test that waits for something gives up; nothing is measured by it."""


class UpstreamTurn:
    """An answer on its way out, for faults that spoil it."""

    def __init__(self, request: web.Request, got: Got, upstream: Upstream) -> None:
        self.request = request
        self.got = got
        self.upstream = upstream

    def truthful(self, script: Script) -> Script:
        """The answer with the tokens that it really took, and its thinking signed."""
        words = "".join(part.text for part in script.parts)
        spent = text_tokens(words, vocabulary_of(self.got.model))
        number = f"{len(self.upstream.requests)}"
        taken = self.upstream.ledger.bill(self.got)
        cache = self.upstream.cache
        use = cache.use(self.got, taken) if cache is not None else CacheUse()
        if self.got.dialect == "anthropic":  # reports input without cached tokens
            taken -= use.read + use.written
        if self.got.dialect == "anthropic" and preserves(self.got.model):
            script = signed(script, self.got.value, thoughts(self.got).last)
        if not self.upstream.names_calls:
            parts = tuple(replace(part, anonymous=True) for part in script.parts)
            script = replace(script, parts=parts)
        script = replace(script, input=taken, output=spent, id=number)
        return replace(script, cached=use.read, written=use.written, written_hour=use.written_hour)

    def events(self, script: Script) -> list[bytes]:
        """The answer as a stream."""
        if self.got.dialect in _PASSING:
            return _PASSING[self.got.dialect](script)
        events = write(script, self.got.dialect)
        if self.got.dialect == "openai-chat" and not self._wants_usage:
            del events[-2]
        return events

    def body(self, script: Script) -> bytes:
        """The answer in one piece."""
        value = whole(script, self.got.dialect)
        if self.got.dialect == "anthropic" and (dropped := thoughts(self.got).dropped):
            value["input_transformations"] = list(dropped)
        return json.dumps(value, ensure_ascii=False).encode()

    @property
    def _wants_usage(self) -> bool:
        return bool(self.got.value.get("stream_options", {}).get("include_usage"))

    async def stream(self) -> web.StreamResponse:
        """Begin a stream; its first byte is on the wire when this returns."""
        kind = EVENT_STREAM if self.got.dialect == "converse" else "text/event-stream"
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(self.request)
        return response

    async def say(self, script: Script) -> web.StreamResponse:
        """Give the answer as it was asked for."""
        if self.got.dialect == "openai-responses":
            self.upstream.ledger.remember(self.got, whole(script, self.got.dialect))
        if not self.got.streams:
            return web.Response(body=self.body(script), content_type="application/json")
        response = await self.stream()
        for event in self.events(script):
            await response.write(event)
        await response.write_eof()
        return response

    def fail(self, status: int, message: str, **headers: str) -> web.Response:
        """Answer with an error in the provider's form."""
        value = error(self.got.dialect, status, message)
        if self.got.dialect == "converse":
            kinds = {429: "ThrottlingException", 403: "InvalidSignatureException"}
            headers["x-amzn-ErrorType"] = kinds.get(status, "ValidationException")
        return web.json_response(value, status=status, headers=headers)

    async def never(self) -> None:
        """Wait until the caller leaves, which ends the handler."""
        self.upstream.waiting.release()
        await asyncio.Event().wait()


@dataclass(frozen=True)
class Fault:
    """A turn that fails."""

    spoil: Callable[[UpstreamTurn], Awaitable[web.StreamResponse]]


Turn = Script | Fault | Callable[[Got], Script | Fault]


class Upstream:
    """A provider that is scripted turn by turn; used as a context manager."""

    def __init__(self, *turns: Turn, window: int = 200_000) -> None:
        self.turns = deque(turns)
        self.any_name = False
        """The model may call tools that the request lacks, as local ones do."""
        self.always: Turn | None = None
        """The answer after the end of the script."""
        self.window = window
        self.names_calls = True
        """Whether Gemini's calls have ids; its models up to 2.5 give none."""
        self.ledger = Ledger()
        self.cache: PromptCache | None = None
        """The prompts that the provider remembers, where it caches any."""
        self.requests: list[Got] = []
        self.refused: list[str] = []
        """Why requests were refused: the words of the provider."""
        self.waiting = threading.Semaphore(0)
        """Released whenever an answer stalls."""
        self.left = threading.Semaphore(0)
        """Released whenever a caller leaves before its answer is whole."""
        self.url = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    def settled(self) -> None:
        """Wait until the upstream's loop has come round."""
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result(PATIENCE)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers, raw_path = dict(request.headers), request.raw_path.partition("?")[0]
        got = Got(request.method, request.path, request.query, headers, body, raw_path)
        self.requests.append(got)
        if not got.dialect:
            return web.json_response({"object": "list", "data": [], "path": got.path})
        spoken = UpstreamTurn(request, got, self)
        if (why := refusal(got, self.window, self.ledger)) is not None:
            self.refused.append(why[1])
            return spoken.fail(*why)
        try:
            return await self._say(spoken)
        except (asyncio.CancelledError, ConnectionError):
            self.left.release()
            raise

    async def _say(self, spoken: UpstreamTurn) -> web.StreamResponse:
        turn = self.turns.popleft() if self.turns else self.always
        if turn is None:
            self.refused.append("the script has come to its end")
            return spoken.fail(500, self.refused[-1])
        script = turn if isinstance(turn, Script | Fault) else turn(self.ledger.seen(spoken.got))
        if isinstance(script, Fault):
            return await script.spoil(spoken)
        unknown = {part.name for part in script.calls} - spoken.got.tools
        if unknown and not self.any_name:
            self.refused.append(f"the script calls tools that the request lacks: {unknown}")
        return await spoken.say(spoken.truthful(script))
