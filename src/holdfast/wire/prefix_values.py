"""Values over all messages of a request, such as a hash or a sum, computed incrementally.

Clients resend their full history, so the value over a known prefix is extended by the added
messages. It is cached on the last message that it covers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.notes import KeyedNote

T = TypeVar("T")
Add = Callable[[T, Sequence[Message]], T]
"""Function from (value, following messages) to the value that includes them."""

LOOK_BACK = 64
"""Number of messages from the end in which an earlier value is searched; clients seldom add more.
"""
# Messages at the end that may change: clients of Anthropic move their cache marks, of which a
# request has at most four. For such clients a value is cached this many messages before the end.
MOVING = 8


class _KnownPrefix(NamedTuple, Generic[T]):
    messages: tuple[Message, ...]
    value: T


class PrefixNote(Generic[T]):
    """A kind of value over consecutive messages, extended from the value of a prefix."""

    def __init__(self, name: str, start: T, add: Add[T]) -> None:
        self._start = start
        self.add = add
        # By number of messages, for two lists that share a message: asked and sent.
        self._values: KeyedNote[_KnownPrefix[T]] = KeyedNote(name, most=2, lasting=False)

    def over(
        self, conversation: Conversation, key: Hashable = None, add: Add[T] | None = None
    ) -> T:
        """Return the value over all messages of a conversation.

        If it depends on more than the messages, `key` contains that and `add` uses it.
        """
        add = add or self.add
        messages = conversation.messages
        length, value = self._earlier(conversation, key)
        stable = len(messages) - MOVING
        if length != len(conversation.extends) and length < stable:
            value = self._put(messages[:stable], key, add(value, messages[length:stable]))
            length = stable
        if length < len(messages):
            value = self._put(messages, key, add(value, messages[length:]))
        return value

    def _put(self, messages: tuple[Message, ...], key: Hashable, value: T) -> T:
        self._values.put(messages[-1], (len(messages), key), _KnownPrefix(messages, value))
        return value

    def _earlier(self, conversation: Conversation, key: Hashable) -> tuple[int, T]:
        """Return the value of the longest known prefix; its entry moves to the new end."""
        messages = conversation.messages
        for n in range(len(messages) - 1, max(-1, len(messages) - 1 - LOOK_BACK), -1):
            earlier = self._values.get(messages[n], (n + 1, key))
            if earlier is not None and (
                earlier.messages is messages or conversation.begins_with(earlier.messages)
            ):
                if n + 1 < len(messages):
                    self._values.drop(messages[n], (n + 1, key))
                return n + 1, earlier.value
        return 0, self._start
