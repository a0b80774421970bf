"""Values over the messages of a conversation, extended from those of a shorter one."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire import Conversation, Message, read
from holdfast.wire.prefix_values import MOVING, PrefixNote


class Adder:
    """Sums the lengths of messages times a factor, and counts the messages that it is shown."""

    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.shown = 0

    def __call__(self, value: int, messages: Sequence[Message]) -> int:
        self.shown += len(messages)
        return value + self.factor * sum(len(message.raw) for message in messages)


def conversation(length: int) -> Conversation:
    messages = [{"role": "user", "content": f"message {n}" * n} for n in range(length)]
    return read({"messages": messages}, "openai-chat")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.booleans())
def test_a_value_is_that_of_all_messages_for_each_key(lengths: list[int], extends: bool) -> None:
    plain, doubled = Adder(1), Adder(2)
    note = PrefixNote("test", 0, plain)
    whole = conversation(max(lengths))
    for length in sorted(lengths) if extends else lengths:
        part = whole.with_messages(whole.messages[:length])
        expected = sum(len(message.raw) for message in part.messages)
        for _ in range(2):
            assert note.over(part) == expected
            assert note.over(part, key="doubled", add=doubled) == 2 * expected


def test_a_message_is_added_once_for_each_key_while_a_conversation_grows() -> None:
    plain, doubled = Adder(1), Adder(2)
    note = PrefixNote("test", 0, plain)
    whole = conversation(40)
    lengths = range(10, 40)
    for length in lengths:
        grown = whole.with_messages(whole.messages[:length])
        for _ in range(2):
            note.over(grown)
            note.over(grown, key="doubled", add=doubled)
    assert plain.shown == doubled.shown <= 39 + MOVING
