"""Read complete responses, and join several into the one for the client.

This is the counterpart of `relay` for requests without streaming.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import ProviderError
from holdfast.wire import Text
from holdfast.wire.responses import (
    anthropic,
    cohere,
    converse,
    gemini,
    openai_chat,
    openai_responses,
)
from holdfast.wire.responses.shared import (
    HandedCalls,
    IsHidden,
    ModelCall,
    blocks_in,
    calls_in,
    load,
)
from holdfast.wire.strict import encode
from holdfast.wire.values import take

_DIALECTS: dict[str, Any] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "converse": converse,
    "cohere": cohere,
}


class ParsedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed content of a provider's response."""

    texts: tuple[str, ...]
    """Text parts."""
    calls: tuple[ModelCall, ...]
    stop_reason: str
    """Stop reason in the dialect's words."""
    usage: dict[str, Any]
    """Usage in the dialect's form; read it with `budget.usage.reported_usage`."""
    turn: tuple[bytes, ...]
    """The assistant's turn as the provider needs it back; see `Relay.assistant_turn`."""
    id: str = ""
    error: str = ""
    """Type of an error sent with status 200; empty if there is none."""
    status: int = 200
    """The status that should have been sent."""

    def __repr__(self) -> str:
        return f"<Answer, {len(self.texts)} texts, {len(self.calls)} calls>"


def read_response(body: bytes, dialect: str) -> ParsedResponse:
    """Parse a complete response."""
    value = _value(body)
    spoken = _DIALECTS[dialect]
    turn = spoken.turn_of(value)
    return ParsedResponse(
        texts=tuple(b.text for b in blocks_in(turn, dialect) if isinstance(b, Text)),
        calls=tuple(calls_in(turn, dialect)),
        stop_reason=spoken.stop_of(value),
        usage=spoken.usage_of(value),
        turn=tuple(encode(message) for message in turn),
        id=take(value, "id") or take(value, "responseId"),
        error=_error(value),
        status=_status(value),
    )


def join_responses(
    bodies: Sequence[bytes],
    dialect: str,
    hidden: IsHidden,
    *,
    handed: HandedCalls | None = None,
) -> bytes:
    """Join the responses of several upstream calls, without hidden calls.

    Use it for the dialects in `CONTINUED`; nothing is hidden in others. A single response that
    hides nothing is returned unchanged. If everything was hidden, the response is empty. Hidden
    calls of the last response may be `handed` to the client as calls of its own tools. See
    `context_usage` for the usage.
    """
    values = [_value(body) for body in bodies]
    spoken = _DIALECTS[dialect]
    if len(bodies) == 1 and not spoken.hides(values[0], hidden):
        return bodies[0]
    joined: dict[str, Any] = spoken.join_bodies(values, hidden, handed or {})
    return encode(joined)


def _value(body: bytes) -> dict[str, Any]:
    value = load(body)
    if not isinstance(value, dict):
        raise ProviderError(
            "the provider's answer is no JSON object",
            where="answer",
            fix="Check that the upstream speaks this dialect.",
        )
    return value


def _status(value: dict[str, Any]) -> int:
    error = value.get("error")
    if not error or value.get("object") == "response":  # it states its own failure
        return 200
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def _error(value: dict[str, Any]) -> str:
    """Return the type of an error inside a response with a success status."""
    error = value.get("error")
    if not error:
        return ""
    kinds = (take(error, "type"), take(error, "status"), take(error, "code"))
    return next(filter(None, kinds), "error")
