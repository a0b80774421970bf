"""Answers that come in one piece: read one, and join several into the one the client gets.

whole: after the dialects; the twin of relay, for requests that do not stream.
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
from holdfast.wire.responses.shared import Call, Handed, Hidden, blocks_in, calls_in, load
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


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider's answer says."""

    texts: tuple[str, ...]
    """Its parts of text."""
    calls: tuple[Call, ...]
    stop_reason: str
    """In the dialect's words."""
    usage: dict[str, Any]
    """In the dialect's form; `budget.usage.reported_usage` reads it."""
    turn: tuple[bytes, ...]
    """The assistant's turn as the provider needs it back: see `Relay.assistant_turn`."""
    id: str = ""
    error: str = ""
    """The kind of an error that came with status 200; empty if there is none."""
    status: int = 200
    """What the status should have been."""

    def __repr__(self) -> str:
        return f"<Answer, {len(self.texts)} texts, {len(self.calls)} calls>"


def read_answer(body: bytes, dialect: str) -> Answer:
    """Read a whole answer."""
    value = _value(body)
    spoken = _DIALECTS[dialect]
    turn = spoken.turn_of(value)
    return Answer(
        texts=tuple(b.text for b in blocks_in(turn, dialect) if isinstance(b, Text)),
        calls=tuple(calls_in(turn, dialect)),
        stop_reason=spoken.stop_of(value),
        usage=spoken.usage_of(value),
        turn=tuple(encode(message) for message in turn),
        id=take(value, "id") or take(value, "responseId"),
        error=_error(value),
        status=_status(value),
    )


def join_answers(
    bodies: Sequence[bytes],
    dialect: str,
    hidden: Hidden,
    *,
    handed: Handed | None = None,
) -> bytes:
    """The answers of several upstream calls as one, without hidden calls; usage: `context_usage`.

    In a dialect of `CONTINUED`, for in others nothing is hidden.

    One answer that hides nothing is given back byte for byte. Where all was hidden, the answer is
    empty. Hidden calls of the last answer may be `handed` to the client, as calls of its own tools.
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
    if not error or value.get("object") == "response":  # which says itself how it failed
        return 200
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def _error(value: dict[str, Any]) -> str:
    """The kind of an error inside an answer that should be none."""
    error = value.get("error")
    if not error:
        return ""
    kinds = (take(error, "type"), take(error, "status"), take(error, "code"))
    return next(filter(None, kinds), "error")
