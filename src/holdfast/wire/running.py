"""What is known about all messages of a request together, such as a hash or a sum.

running: after conversation. Clients send their whole history with each request: what follows from
the knowledge about the beginning and from what was added is not worked out anew, so that a turn
costs what was added to it. The knowledge is kept with the last message that it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.notes import KeyedNote

T = TypeVar("T")

_LOOK_BACK = 64
"""How many messages from the end an earlier value is looked for: clients seldom add more at once.
"""


class RunningNote(Generic[T]):
    """One kind of knowledge about messages in a row, made by adding to that about the first."""

    def __init__(self, name: str, start: T, add: Callable[[T, Sequence[Message]], T]) -> None:
        self._start = start
        self.add = add
        """(value, messages behind those it is about) → the value over all of them."""
        # For two lists that end with one message: as asked, and as sent.
        self._values: KeyedNote[tuple[tuple[Message, ...], T]] = KeyedNote(
            name, most=2, lasting=False
        )

    def over(self, conversation: Conversation) -> T:
        """The value over all messages of a conversation."""
        messages = conversation.messages
        if not messages:
            return self._start
        length, value = self._earlier(conversation)
        if length < len(messages):
            value = self.add(value, messages[length:])
            self._values.put(messages[-1], len(messages), (messages, value))
        return value

    def _earlier(self, conversation: Conversation) -> tuple[int, T]:
        """The value over the longest beginning that is known; it moves on to the new end."""
        messages = conversation.messages
        for n in range(len(messages) - 1, max(-1, len(messages) - 1 - _LOOK_BACK), -1):
            known = self._values.get(messages[n], n + 1)
            if known is not None and (known[0] is messages or conversation.begins_with(known[0])):
                if n + 1 < len(messages):
                    self._values.drop(messages[n], n + 1)
                return n + 1, known[1]
        return 0, self._start
