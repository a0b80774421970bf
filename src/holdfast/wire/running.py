"""What is known about all messages of a request together, such as a hash or a sum.

running: after conversation. Clients send their whole history with each request: what follows from
the knowledge about the beginning and from what was added is not worked out anew, so that a turn
costs what was added to it. The knowledge is kept with the last message that it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.notes import KeyedNote

T = TypeVar("T")
Add = Callable[[T, Sequence[Message]], T]
"""(value, messages behind those it is about) → the value over all of them."""

LOOK_BACK = 64
"""How many messages from the end an earlier value is looked for: clients seldom add more at once.
"""
MOVING = 8
"""Messages at the end that may come back changed: clients of Anthropic move their cache marks, of
which a request has at most four. Of a client that does, a value is kept that many messages back."""


class _Known(NamedTuple, Generic[T]):
    messages: tuple[Message, ...]
    value: T


class RunningNote(Generic[T]):
    """One kind of knowledge about messages in a row, made by adding to that about the first."""

    def __init__(self, name: str, start: T, add: Add[T]) -> None:
        self._start = start
        self.add = add
        # By how many messages it is about, for two lists that go through one message: as asked, and
        # as sent.
        self._values: KeyedNote[_Known[T]] = KeyedNote(name, most=2, lasting=False)

    def over(
        self, conversation: Conversation, key: Hashable = None, add: Add[T] | None = None
    ) -> T:
        """The value over all messages of a conversation.

        Where it depends on more than the messages, `key` names that, and `add` knows of it.
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
        self._values.put(messages[-1], (len(messages), key), _Known(messages, value))
        return value

    def _earlier(self, conversation: Conversation, key: Hashable) -> tuple[int, T]:
        """The value over the longest beginning that is known; it moves on to the new end."""
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
