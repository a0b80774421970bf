"""The messages of a request that are known from the one before, so that nothing is done twice.

heads: the first step of the engine. Which conversation a request belongs to is told by its
beginning: see wire/places.py.
"""

from __future__ import annotations

from holdfast.trim.anchors import MARK
from holdfast.wire import DIALECTS, Conversation
from holdfast.wire.message import beginning


def sharing(conversation: Conversation, before: Conversation | None) -> Conversation:
    """The same request, made of the messages known from before where their bytes are equal.

    What is known about a message is kept with it: its tokens are not counted again.
    """
    if before is None or before.dialect != conversation.dialect:
        return conversation
    same = beginning(before.messages, conversation.messages)
    if same == len(before.messages):
        return conversation
    messages = list(conversation.messages)
    for n in range(same, min(len(before.messages), len(messages))):
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
        extends=conversation.extends if same >= len(conversation.extends) else (),
        even=conversation.even,
    )
