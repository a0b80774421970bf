"""The offline model behind the proxy: answers in every dialect, without key or network.

offline: after sending and routes, beside the network. It is asked as an upstream is, so that a
newcomer sees everything else work as it would with one.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast import models
from holdfast.errors import WireError
from holdfast.expand.tool import DESCRIPTION, NAME, OTHER_NAME
from holdfast.surfaces.proxy.routes import Route, route
from holdfast.surfaces.proxy.sending import Reply
from holdfast.tokens import count
from holdfast.wire import Conversation, read
from holdfast.wire.answers import Call, Said, compose_answer, error_body, stream_answer
from holdfast.wire.strict import Limits, encode
from holdfast.wire.tools import offered_tools

MODEL = "holdfast-offline"
_LARGE_BYTES = 100_000


def _new_id() -> str:
    return uuid.uuid4().hex[:24]


class OfflineSending:
    """Answers requests in the place of an upstream."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = _new_id,
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._new_id = new_id

    @asynccontextmanager
    async def send(
        self, url: str, method: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[Reply]:
        """Answer a request; `url` is its path, which names the dialect."""
        del headers  # there is nobody to recognise
        found = route(method, url)
        if found is None:
            text = "The offline model answers requests for an answer only."
            yield _Reply(404, "application/json", (error_body("openai-chat", 404, text),))
            return
        try:
            conversation = read(body, found.dialect, limits=self._limits)
        except WireError as error:
            text = str(error)
            yield _Reply(400, "application/json", (error_body(found.dialect, 400, text),))
            return
        if len(body) > _LARGE_BYTES:
            yield await asyncio.to_thread(self._reply, conversation, found)
        else:
            yield self._reply(conversation, found)

    def _reply(self, conversation: Conversation, found: Route) -> _Reply:
        tokens = count(conversation, model=found.model or None).tokens
        if found.counts:
            name = "totalTokens" if found.dialect == "gemini" else "input_tokens"
            return _Reply(200, "application/json", (encode({name: tokens}),))
        said = self._said(conversation, tokens)
        if found.streams or conversation.rest.get("stream") is True:
            events = stream_answer(said, found.dialect, usage=_wants_usage(conversation.rest))
            return _Reply(200, "text/event-stream", tuple(events))
        return _Reply(200, "application/json", (compose_answer(said, found.dialect),))

    def _said(self, conversation: Conversation, tokens: int) -> Said:
        tool = _expansion_tool(conversation)
        spoken = models.answer(conversation, expansion_tool=tool)
        calls = tuple(
            Call(
                f"call_{self._new_id()}",
                tool or NAME,
                encode({"ref_id": one.ref_id, "query": one.query}).decode(),
            )
            for one in spoken.openings
        )
        written = spoken.text + "".join(call.arguments for call in calls)
        return Said(
            id=self._new_id(),
            model=MODEL,
            created=int(self._clock()),
            pieces=spoken.pieces,
            calls=calls,
            input_tokens=tokens,
            output_tokens=models.count(written),
            cut=spoken.cut,
        )


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


def _expansion_tool(conversation: Conversation) -> str | None:
    """The proxy's own tool; a client's tool of the same name is none to call."""
    names = {tool.name for tool in offered_tools(conversation) if tool.description == DESCRIPTION}
    return next((name for name in (OTHER_NAME, NAME) if name in names), None)


def _wants_usage(body: Any) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
