"""The offline model's answers in every dialect, without key or network.

offline: beside network. It is asked as an upstream is, so that a newcomer sees everything else
work as it would with one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from holdfast import models
from holdfast.expand.tool import NAME, OTHER_NAME, is_opener
from holdfast.wire import Conversation
from holdfast.wire.responses import ModelCall, OfflineResponse, compose_response, stream_response
from holdfast.wire.strict import encode
from holdfast.wire.tools import offered_tools

MODEL = "holdfast-offline"


def random_id() -> str:
    """An id that nobody else has."""
    return uuid.uuid4().hex[:24]


class OfflineModel:
    """Quotes the conversation on its last question, in the form of a provider's answer."""

    def __init__(
        self, *, clock: Callable[[], float] = time.time, new_id: Callable[[], str] = random_id
    ) -> None:
        self._clock = clock
        self._new_id = new_id

    def answer(self, conversation: Conversation, dialect: str, tokens: int) -> bytes:
        """Return the whole answer; `tokens` is the reported size of the request."""
        return compose_response(self._said(conversation, tokens), dialect)

    def stream(self, conversation: Conversation, dialect: str, tokens: int) -> tuple[bytes, ...]:
        """The answer as the events of a stream."""
        usage = _wants_usage(conversation.rest)
        return tuple(stream_response(self._said(conversation, tokens), dialect, usage=usage))

    def _said(self, conversation: Conversation, tokens: int) -> OfflineResponse:
        tool = _expansion_tool(conversation)
        spoken = models.answer(conversation, expansion_tool=tool)
        calls = tuple(
            ModelCall(
                f"call_{self._new_id()}",
                tool or NAME,
                encode({"ref": opening.ref_id, "find": opening.query}).decode(),
            )
            for opening in spoken.openings
        )
        written = spoken.text + "".join(call.arguments for call in calls)
        return OfflineResponse(
            id=self._new_id(),
            model=MODEL,
            created=int(self._clock()),
            pieces=spoken.pieces,
            calls=calls,
            input_tokens=tokens,
            output_tokens=models.count(written),
            cut=spoken.cut,
        )


def _expansion_tool(conversation: Conversation) -> str | None:
    """The proxy's own tool; a client's tool of the same name is none to call."""
    names = {tool.name for tool in offered_tools(conversation) if is_opener(tool)}
    return next((name for name in (OTHER_NAME, NAME) if name in names), None)


def _wants_usage(body: Any) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
