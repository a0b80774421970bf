"""Where something stands in a conversation: the hash of all that the client said before it.

places: after message and notes, before answers. Messages are compared by what they say, in their
normal form: cache marks move with every request, a text is a string or a list with one part, and
many clients drop thinking from older turns. Two histories with one hash say the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.normal_form import normal_form
from holdfast.wire.notes import SingleNote
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import sha256_of

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

MOST_HEADS = 200
"""How far back a request is looked for: a client seldom adds more messages at once."""

_DIGEST_BYTES = 32
_FINGERPRINT: SingleNote[bytes] = SingleNote("fingerprint")


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
    """Return the hash of what a message says, whatever shape it comes in; empty for thinking alone.

    Stored heads of sessions are made of these: a change here splits every session once.
    """
    fingerprint = _FINGERPRINT.get(message)
    if fingerprint is None:
        fingerprint = _FINGERPRINT.put(message, _hashed(message))
    return fingerprint


def _hashed(message: Message) -> bytes:
    # Thinking is the assistant's; the same fields in anybody else's message are content.
    keeps_thinking = message.role != "assistant"
    value = normal_form(message.parsed, message.dialect, keeps_thinking=keeps_thinking)
    return sha256_of(value, message.size) if value is not None else b""
