"""The offline model of the proxy: answers in every dialect, without key or network.

It is called like an upstream, so that a newcomer sees everything else work as it would with one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from holdfast.errors import WireError
from holdfast.surfaces.proxy.routes import Route, route
from holdfast.tokens import count
from holdfast.upstream.network import UpstreamReply
from holdfast.upstream.offline import OfflineModel, random_id
from holdfast.wire import Conversation, read
from holdfast.wire.responses import error_body
from holdfast.wire.strict import Limits, encode

_LARGE_BYTES = 100_000


class OfflineSending:
    """Answers requests in the place of an upstream."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._limits = limits or Limits()
        self._model = OfflineModel(clock=clock, new_id=new_id)

    @asynccontextmanager
    async def send(
        self, url: str, method: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[UpstreamReply]:
        """Answer a request; `url` is its path, which names the dialect."""
        del headers  # there is nobody to recognise
        found_route = route(method, url)
        if found_route is None:
            text = "The offline model answers requests for an answer only."
            yield _Reply(404, "application/json", (error_body("openai-chat", 404, text),))
            return
        try:
            conversation = read(body, found_route.dialect, limits=self._limits)
        except WireError as error:
            text = str(error)
            yield _Reply(400, "application/json", (error_body(found_route.dialect, 400, text),))
            return
        if len(body) > _LARGE_BYTES:
            yield await asyncio.to_thread(self._reply, conversation, found_route)
        else:
            yield self._reply(conversation, found_route)

    def _reply(self, conversation: Conversation, found: Route) -> _Reply:
        tokens = count(conversation, model=found.model or None).tokens
        if found.counts:
            name = "totalTokens" if found.dialect == "gemini" else "input_tokens"
            return _Reply(200, "application/json", (encode({name: tokens}),))
        if found.streams or conversation.rest.get("stream") is True:
            events = self._model.stream(conversation, found.dialect, tokens)
            return _Reply(200, "text/event-stream", events)
        answer = self._model.answer(conversation, found.dialect, tokens)
        return _Reply(200, "application/json", (answer,))


class _Reply:
    """An answer that is there already, given piece by piece."""

    def __init__(self, status: int, kind: str, pieces: tuple[bytes, ...]) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": kind}
        self._pieces = pieces

    async def chunks(self) -> AsyncGenerator[bytes]:
        for piece in self._pieces:
            yield piece
            await asyncio.sleep(0)  # others get their turn between two pieces
