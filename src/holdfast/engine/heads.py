"""Reuse the messages that are known from the previous request, so that no work is repeated.

heads: before record and session. The beginning of a request determines its conversation: see
wire/places.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.fitting import FitState
from holdfast.trim.anchors import MARK
from holdfast.wire import DIALECTS, Conversation
from holdfast.wire.message import common_prefix


def sharing(conversation: Conversation, before: Conversation | None) -> Conversation:
    """Return the request with known messages in place of those with equal bytes.

    Notes on a known message are reused with it: its tokens are not counted again.
    """
    if before is None or before.dialect != conversation.dialect:
        return conversation
    shared = common_prefix(before.messages, conversation.messages)
    if shared == len(before.messages):
        return conversation
    messages = list(conversation.messages)
    for n in range(shared, min(len(before.messages), len(messages))):
        old, new = before.messages[n], messages[n]
        if old is not new and bytes(old.span) == bytes(new.span):
            MARK.carry(new, old)  # the caller may have marked the message it has read anew
            old.window = new.window  # a window on the body before would keep all of that in memory
            messages[n] = old
            new.let_go()  # what refers to itself would wait for the collector once it is forgotten
    return Conversation(
        DIALECTS[conversation.dialect],
        conversation.frame,
        tuple(messages),
        source=conversation.source,
        body=conversation.rest,
        extends=conversation.extends if shared >= len(conversation.extends) else (),
        even=conversation.even,
    )


def let_go_of(requests: Iterable[Conversation], state: FitState | None = None) -> None:
    """Break what refers to itself in requests that nobody looks at any more, so that it is free.

    Messages that are in a session's state too stay as they are. What refers to itself holds its
    whole body: 60 counts of a megabyte of short messages took 650 until a full collection.
    """
    own = (state.asked, state.sent) if state is not None else ()
    for request in requests:
        shared = max((common_prefix(each.messages, request.messages) for each in own), default=0)
        later = request.messages[shared:]
        staying = {id(message) for each in own for message in each.messages} if later else ()
        for message in later:
            if id(message) not in staying:
                message.let_go()
