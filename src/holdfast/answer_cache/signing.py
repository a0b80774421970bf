"""Equality of requests: the question, and a hash of everything else.

The hash covers the client's own bytes: every message before the question, and model, sampling,
system, tools and all other fields. Only the delivery of the answer is left out. So an unknown
parameter makes a different request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from holdfast.wire import Conversation, Message, Text
from holdfast.wire.stored_history import stored_fields
from holdfast.wire.strict import splice
from holdfast.wire.tools import offered_tools

_DELIVERY = ("stream", "stream_options")
"""In one piece or as a stream: an answer is written as it is asked for."""
_VERSION = b"holdfast answers 1"
ID_PREFIX = "ans_"
"""So that an id is never taken for the digits of a ref."""


class SignedRequest(NamedTuple):
    """A request as it is looked up."""

    prompt: str
    """The text of the last message; empty if it is the user's no more, or holds no text."""
    signature: str
    is_question: bool
    """The last message is a text of the user, and nothing else."""
    has_tools: bool
    temperature: float | None
    """The request's value; None for the provider's default, which is above 0."""


def sign(conversation: Conversation, *beside: str) -> SignedRequest | None:
    """Return the question and the hash of a request; None if it cannot be cached.

    It cannot if it depends on data outside of the body, or wants several answers.

    `beside` are inputs of the answer outside of the body, such as the upstream.
    """
    body = conversation.rest
    if stored_fields(conversation) or not conversation.messages:
        return None
    config = body.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    if any(several not in (None, 1) for several in (body.get("n"), config.get("candidateCount"))):
        return None
    *before, last = conversation.messages
    question = _question(last)
    hollow = splice(last.raw, question.slot, b'""') if question is not None else last.raw
    around = {name: value for name, value in body.items() if name not in _DELIVERY}
    signature = _digest(
        (
            *(_VERSION, conversation.dialect.encode(), *(each.encode() for each in beside)),
            msgspec.json.encode(_ordered(around)),
            *(bytes(message.span) for message in before),
            hollow,
        )
    )
    temperature = body.get("temperature", config.get("temperature"))
    return SignedRequest(
        _text(last) if question is None else question.text,
        signature,
        question is not None,
        bool(offered_tools(conversation)),
        temperature if isinstance(temperature, int | float) else None,
    )


def _question(last: Message) -> Text | None:
    """Return the only text of a user's message, if it is one."""
    if last.role != "user" or len(last.blocks) != 1:
        return None
    [block] = last.blocks
    return block if isinstance(block, Text) and block.slot else None


def _text(last: Message) -> str:
    if last.role != "user":
        return ""
    return "\n".join(block.text for block in last.blocks if isinstance(block, Text))


def _ordered(value: Any) -> Any:
    """Return a value with sorted members: their order does not matter."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


def _digest(parts: Iterable[bytes]) -> str:
    """Return a hash of parts with their lengths, so that parts cannot be confused."""
    summed = hashlib.sha256()
    for part in parts:
        summed.update(len(part).to_bytes(8, "big"))
        summed.update(part)
    return summed.hexdigest()


def answer_id(prompt: str, signature: str) -> str:
    """The id of the answer to a question in a context (004-23)."""
    return ID_PREFIX + _digest((prompt.encode("utf-8", "surrogatepass"), signature.encode()))
