"""Group messages into exchanges, the unit that everything later moves.

exchanges: after conversation's messages; knows blocks, not dialects.

A call and its results are one exchange, the whole parallel batch included: separated, every
provider refuses the request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from holdfast.wire.conversation import Message

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
    answers: dict[str, list[int]] = defaultdict(list)
    for i in range(len(messages) - 1, start - 1, -1):
        for result in messages[i].results:
            answers[result.call_id].append(i)  # the nearest one last

    exchanges = []
    while start < len(messages):
        stop, complete = _extent(messages, start, answers)
        first = messages[start]
        kind: Kind = (
            "tool" if any(m.calls or m.results for m in messages[start:stop]) else first.role
        )
        exchanges.append(Exchange(kind, start, tuple(messages[start:stop]), complete))
        start = stop
    return exchanges


def _extent(
    messages: Sequence[Message], start: int, answers: dict[str, list[int]]
) -> tuple[int, bool]:
    """Where the exchange that begins at `start` ends, and whether it is complete."""
    first = messages[start]
    if first.results:
        return start + 1, False  # a result whose call is gone
    if first.role != "assistant":
        return start + 1, True

    stop = start
    must_reach = start  # the last message that answers a call seen so far
    complete = True
    while stop < len(messages):
        message = messages[stop]
        inside = stop <= must_reach
        answering = bool(message.results) and _has_calls(messages, start, stop)
        # Items or messages of one assistant turn stay together until its results begin.
        talking = message.role == "assistant" and not any(m.results for m in messages[start:stop])
        if not (inside or answering or talking):
            break
        for call in message.calls:
            found = answers[call.id]
            while found and found[-1] <= stop:
                found.pop()
            if found:
                must_reach = max(must_reach, found[-1])
            elif not (call.id == "" and _answered_next(messages, stop)):
                complete = False
        stop += 1
    return stop, complete


def _has_calls(messages: Sequence[Message], start: int, stop: int) -> bool:
    return any(message.calls for message in messages[start:stop])


def _answered_next(messages: Sequence[Message], index: int) -> bool:
    """Whether the next message answers; pairs calls without ids, as in Gemini before 3."""
    return index + 1 < len(messages) and bool(messages[index + 1].results)
