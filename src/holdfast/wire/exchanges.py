"""Group messages into exchanges, the unit that everything later moves.

exchanges: used by conversation; knows blocks, not dialects.

A call and its results are one exchange, the whole parallel batch included: separated, every
provider refuses the request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from holdfast.wire.blocks import ToolCall, ToolResult

if TYPE_CHECKING:
    from holdfast.wire.message import Message

Kind = Literal["system", "user", "assistant", "tool"]


class Exchange(msgspec.Struct, frozen=True):
    """A system message, a user turn, or an assistant turn with its calls and all their results."""

    kind: Kind
    """`tool` for an assistant turn that calls tools, else the role."""
    start: int
    """Index of its first message."""
    messages: tuple[Message, ...]
    complete: bool = True
    """False if a call has no result or a result no call."""

    @property
    def stop(self) -> int:
        """Index behind its last message."""
        return self.start + len(self.messages)

    def __repr__(self) -> str:
        return f"<Exchange {self.kind}, messages {self.start} to {self.stop - 1}>"


def group(messages: Sequence[Message], start: int = 0) -> list[Exchange]:
    """Group `messages[start:]`; `start` must be where an exchange begins."""
    ids = [_Ids(message) for message in messages[start:]]
    answers: dict[str, list[int]] = defaultdict(list)
    for i in range(len(ids) - 1, -1, -1):
        for call_id in ids[i].answered:
            answers[call_id].append(i)  # the nearest one last

    exchanges = []
    first = 0
    while first < len(ids):
        stop, complete = _extent(ids, first, answers)
        used = any(ids[i].called or ids[i].answered for i in range(first, stop))
        members = tuple(messages[start + first : start + stop])
        kind: Kind = "tool" if used else members[0].role
        exchanges.append(Exchange(kind, start + first, members, complete))
        first = stop
    return exchanges


class _Ids:
    """Which calls a message makes and which it answers."""

    __slots__ = ("answered", "called", "is_assistant")

    def __init__(self, message: Message) -> None:
        self.is_assistant = message.role == "assistant"
        self.called = [b.id for b in message.blocks if isinstance(b, ToolCall)]
        self.answered = [b.call_id for b in message.blocks if isinstance(b, ToolResult)]


def _extent(ids: list[_Ids], start: int, answers: dict[str, list[int]]) -> tuple[int, bool]:
    """Where the exchange that begins at `start` ends, and whether it is complete."""
    if ids[start].answered:
        return start + 1, False  # a result whose call is gone
    if not ids[start].is_assistant:
        return start + 1, True

    must_reach = start  # the last message that answers a call seen so far
    has_calls = has_results = False
    complete = True
    stop = start
    while stop < len(ids):
        this = ids[stop]
        answering = bool(this.answered) and has_calls
        # Items or messages of one assistant turn stay together until its results begin.
        talking = this.is_assistant and not has_results
        if not (stop <= must_reach or answering or talking):
            break
        for call_id in this.called:
            waiting = answers[call_id]
            while waiting and waiting[-1] <= stop:
                waiting.pop()
            if waiting:
                must_reach = max(must_reach, waiting[-1])
            else:
                complete = False
        has_calls = has_calls or bool(this.called)
        has_results = has_results or bool(this.answered)
        stop += 1
    return stop, complete
