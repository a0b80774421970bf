"""Which conversation a request belongs to.

heads: the first step of the engine. Clients send their whole history with each request, and
seldom say which conversation it is: it is known by its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from holdfast.fitting.following import unmarked
from holdfast.trim.anchors import MARK
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.notes import SingleNote
from holdfast.wire.strict import encode

_FINGERPRINT: SingleNote[bytes] = SingleNote("fingerprint")

MOST_HEADS = 200
"""How far back a request is looked for: a client seldom adds more messages at once."""


def heads(messages: Sequence[Message]) -> list[str]:
    """A name for each beginning of a conversation, the longest first; cache marks do not count."""
    running = hashlib.sha256(b"".join(map(_fingerprint, messages[:-MOST_HEADS])))
    names = []
    for message in messages[-MOST_HEADS:]:
        running.update(_fingerprint(message))
        names.append(running.hexdigest())
    return names[::-1]


def head_of(messages: Sequence[Message]) -> str:
    """The name of a whole conversation; empty if there is nothing in it."""
    prints = b"".join(map(_fingerprint, messages))
    return hashlib.sha256(prints).hexdigest() if prints else ""


def _fingerprint(message: Message) -> bytes:
    fingerprint = _FINGERPRINT.get(message)
    if fingerprint is None:
        span = bytes(message.span)
        if b"cache_control" in span:
            span = encode(unmarked(message.value))
        fingerprint = _FINGERPRINT.put(message, hashlib.sha256(span).digest())
    return fingerprint


def sharing(conversation: Conversation, before: Conversation | None) -> Conversation:
    """The same request, made of the messages known from before where their bytes are equal.

    What is known about a message is kept with it: its tokens are not counted again.
    """
    if before is None or before.dialect != conversation.dialect:
        return conversation
    messages = list(conversation.messages)
    for n, (old, new) in enumerate(zip(before.messages, messages, strict=False)):
        if old is not new and bytes(old.span) == bytes(new.span):
            MARK.carry(new, old)  # the caller may have marked the message it has read anew
            old.span = new.span  # a window on the body before would keep all of that in memory
            messages[n] = old
    return Conversation(
        DIALECTS[conversation.dialect],
        conversation.frame,
        tuple(messages),
        source=conversation.source,
        body=conversation.rest,
    )
