"""Where something stands in a conversation: the hash of all that the client said before it.

places: after message and notes, before answers. What a client adds to its messages and takes away
again does not count: cache marks, which move with every request, and thinking, which many clients
drop from older turns. All else does: two histories with one hash say the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.notes import SingleNote
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import sha256_of

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

MOST_HEADS = 200
"""How far back a request is looked for: a client seldom adds more messages at once."""

_DIGEST_BYTES = 32
_FINGERPRINT: SingleNote[bytes] = SingleNote("fingerprint")
_MARK = "cache_control"
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
"""Types of blocks and items that hold thinking: Anthropic's two, and OpenAI's of Responses."""
_THOUGHT_FIELDS = frozenset(
    # As DeepSeek, vLLM and OpenRouter name it on chat messages; Gemini signs parts of a turn.
    "reasoning reasoning_content reasoning_details thoughtSignature thought_signature".split()
)


class _Trail(NamedTuple):
    """The places behind the messages of a conversation."""

    running: Hash
    """Over all of them."""
    digests: bytes = b""
    """Of the last `MOST_HEADS` places, one behind the other."""


def _followed(trail: _Trail, messages: Sequence[Message]) -> _Trail:
    """The trail with messages behind it."""
    running, digests = trail.running.copy(), [trail.digests]
    unnamed = max(0, len(messages) - MOST_HEADS)
    running.update(b"".join(map(fingerprint, messages[:unnamed])))
    for message in messages[unnamed:]:
        running.update(fingerprint(message))
        digests.append(running.digest())
    return _Trail(running, b"".join(digests)[-MOST_HEADS * _DIGEST_BYTES :])


_TRAIL = RunningNote("trail", _Trail(hashlib.sha256()), _followed)


def heads(conversation: Conversation) -> list[str]:
    """A name for each beginning of a conversation, the longest first; of a long one the last."""
    digests = _TRAIL.over(conversation).digests
    ends = range(len(digests), 0, -_DIGEST_BYTES)
    return [digests[end - _DIGEST_BYTES : end].hex() for end in ends]


def head_of(conversation: Conversation) -> str:
    """The name of a whole conversation; empty if there is nothing in it."""
    return _TRAIL.over(conversation).digests[-_DIGEST_BYTES:].hex()


def places(messages: Sequence[Message], start: int = 0) -> list[str]:
    """The place behind each number of messages, from `start` of them to all."""
    running = hashlib.sha256(b"".join(map(fingerprint, messages[:start])))
    names = [running.hexdigest()] if start <= len(messages) else []
    for message in messages[start:]:
        running.update(fingerprint(message))
        names.append(running.hexdigest())
    return names


def fingerprint(message: Message) -> bytes:
    """What a message is known by, wherever it stands and whether it is marked for the cache."""
    fingerprint = _FINGERPRINT.get(message)
    if fingerprint is None:
        fingerprint = _FINGERPRINT.put(message, _hashed(message))
    return fingerprint


def _hashed(message: Message) -> bytes:
    if message.role == "assistant":  # written anew whether it holds thinking or not
        value = _without_thoughts(unmarked(message.parsed))
        return sha256_of(value, message.size) if value is not None else b""
    span = memoryview(message.span)
    if message.holds(_MARK.encode()) or _is_spaced(bytes(span[:_FIRST_KEY])):
        return sha256_of(unmarked(message.parsed), message.size)
    return hashlib.sha256(span).digest()


_FIRST_KEY = 200
"""Bytes among which the first key of a message ends; no provider has one that is longer."""


def _is_spaced(span: bytes) -> bool:
    """Whether a client writes JSON with spaces, as Python's `json` does unless it is told not to.

    Then a message is written anew, too: without its mark it must be the same as with it. One writer
    writes all alike, so the first key tells.
    """
    behind_key = span.find(b'":') + 2
    return span[1:2].isspace() or span[behind_key : behind_key + 1].isspace()


def unmarked(value: Any) -> Any:
    """A message without its cache marks: they stand on it, on its parts, and on theirs."""
    if isinstance(value, list):
        return [unmarked(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        key: unmarked(inner) if key == "content" else inner
        for key, inner in value.items()
        if key != _MARK
    }


def _without_thoughts(value: Any) -> Any:
    """A message of the assistant without its thinking; None if it is nothing but that."""
    if not isinstance(value, dict):
        return value
    if value.get("type") in _THOUGHTS:
        return None
    plain = {key: inner for key, inner in value.items() if key not in _THOUGHT_FIELDS}
    for key in ("content", "parts"):
        if isinstance(plain.get(key), list):
            parts = [_part_without_thoughts(part) for part in plain[key]]
            plain[key] = [part for part in parts if part is not None]
    return plain


def _part_without_thoughts(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") in _THOUGHTS or part.get("thought") is True or "reasoningContent" in part:
        return None
    return {key: inner for key, inner in part.items() if key not in _THOUGHT_FIELDS}
