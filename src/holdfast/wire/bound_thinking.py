"""Thinking that is bound to the content before it, and how to remove it.

On models with preserved thinking a signature covers the exact system, tools and messages before the
block, and after an edit the provider rejects the request ("bound to a different conversation").
Signatures cannot be verified here, so thinking is removed from a position on, which is always
allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.wire.blocks import Thinking, ToolResult
from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.reader import dialect_named
from holdfast.wire.rules.anthropic_thoughts import drops_what_is_bound, has_preserved_thinking
from holdfast.wire.strict import encode, items, splice
from holdfast.wire.values import inner

BINDING = ("anthropic", "converse")
"""Dialects in which thinking is a block of a message's content."""


def is_bound(model: str, body: Any) -> bool:
    """Return whether an edit invalidates later thinking; `body` is `Conversation.rest`."""
    return has_preserved_thinking(model) and not drops_what_is_bound(_thinking(body))


def thinks(body: Any) -> bool:
    """Return whether a request enables thinking."""
    return _thinking(body).get("type") not in (None, "disabled")


def has_bound_thoughts(asked: Conversation, model: str) -> bool:
    """Return whether changing the tools would invalidate thinking already in the history."""
    if asked.dialect not in BINDING or not is_bound(model, asked.rest) or not thinks(asked.rest):
        return False
    return any(isinstance(block, Thinking) for m in asked.messages for block in m.blocks)


def _thinking(body: Any) -> dict[str, Any]:
    """Return the thinking options; Converse has them among the model's own fields."""
    return inner(body, "thinking") or inner(body, "additionalModelRequestFields", "thinking")


def without_thinking(conversation: Conversation, start: int) -> Conversation:
    """Return the request without thinking in the messages from `start` on.

    Untouched messages are the same objects. A message of only thinking is removed, and the API
    joins its neighbours. With thinking enabled, a turn that still calls tools must start with
    thinking, so thinking is then disabled for this request (opencode#3077).
    """
    if conversation.dialect not in BINDING:
        return conversation
    messages = list(conversation.messages[:start])
    for message in conversation.messages[start:]:
        messages.extend(_without_thinking_blocks(message))
    is_same_length = len(messages) == len(conversation.messages)
    if is_same_length and all(map(_is, messages, conversation.messages)):
        return conversation
    return _unless_required(conversation.with_messages(tuple(messages)))


def without_bound_thinking(conversation: Conversation, start: int) -> Conversation:
    """Return the request without thinking from `start` on, if it is bound to changed content."""
    if not is_bound(conversation.model or "", conversation.rest):
        return conversation
    return without_thinking(conversation, start)


def without_bound_thinking_in_turn(
    turn: Sequence[bytes], history: Conversation
) -> tuple[bytes, ...]:
    """Return a turn for use after another conversation than the one it answered.

    Bound thinking is removed; a turn of only thinking becomes empty.
    """
    if history.dialect not in BINDING or not is_bound(history.model or "", history.rest):
        return tuple(turn)
    dialect = dialect_named(history.dialect)
    messages = (Message(raw, "assistant", dialect) for raw in turn)
    return tuple(
        bytes(remaining.span)
        for message in messages
        for remaining in _without_thinking_blocks(message)
    )


def _is(message: Message, other: Message) -> bool:
    return message is other


def _without_thinking_blocks(message: Message) -> list[Message]:
    """Return a message without its thinking, other bytes unchanged; empty if nothing remains."""
    removed = {block.place[-1] for block in message.blocks if isinstance(block, Thinking)}
    if not removed or message.role != "assistant":
        return [message]
    content = msgspec.json.decode(message.span, type=_Content).content
    remaining = [block for n, block in enumerate(items(content)) if n not in removed]
    if not remaining:
        return []
    span = splice(message.span, ("content",), encode(remaining))
    return [Message(span, message.role, dialect_named(message.dialect))]


class _Content(msgspec.Struct):
    content: msgspec.Raw


def _unless_required(conversation: Conversation) -> Conversation:
    if conversation.dialect != "anthropic" or not _requires_thinking(conversation.rest):
        return conversation
    if not _calls_tools(conversation.messages):
        return conversation
    return conversation.with_field("thinking", {"type": "disabled"})


def _requires_thinking(body: Any) -> bool:
    """Return whether a turn must start with thinking; adaptive thinking lets the model decide."""
    return inner(body, "thinking").get("type") == "enabled"


def _calls_tools(messages: Sequence[Message]) -> bool:
    """Return whether the last message answers calls, so that the turn before it continues."""
    return bool(messages) and any(isinstance(block, ToolResult) for block in messages[-1].blocks)
