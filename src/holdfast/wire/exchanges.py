"""Group messages into exchanges, the unit that everything later moves.

exchanges: used by conversation; knows blocks, not dialects.

A call and its results are one exchange, the whole parallel batch included: separated, every
provider refuses the request. So are a server tool's use and its result, a search for tools and
what it gave, a program and its output, with all that stands between them.

What must stay where it is, whatever is folded around it, is an exchange of its own. Such messages
act by their place: a compaction stands for all before it and must come first, and tools that were
added or found in the middle can be called only behind the message that brought them. Moved, folded
or dropped, the provider refuses what follows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from holdfast.wire.blocks import Opaque, Thinking, ToolCall, ToolResult

if TYPE_CHECKING:
    from holdfast.wire.message import Message

Kind = Literal["system", "user", "assistant", "tool"]

STAYING = frozenset(
    {
        # Anthropic: first in messages, signed (errors compaction_block_misplaced, _incomplete_turn)
        "compaction",
        # Anthropic: tools added in the middle; tools that a search has found (CLIProxyAPI#1547)
        "tool_addition",
        "tool_removal",
        "tool_reference",
        "tool_search_tool_result",
        # OpenAI Responses: the same, and the order to compact, which must come last
        "additional_tools",
        "compaction_trigger",
        "tool_search_call",
        "tool_search_output",
        # It stands for an item that nobody here has seen: it may be half of a pair
        "item_reference",
    }
)
"""Types of blocks and items."""


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
    def stays(self) -> bool:
        """Whether it must neither be moved nor folded nor dropped: see `stays`."""
        return any(map(stays, self.messages))

    @property
    def stop(self) -> int:
        """Index behind its last message."""
        return self.start + len(self.messages)

    def __repr__(self) -> str:
        return f"<Exchange {self.kind}, messages {self.start} to {self.stop - 1}>"


def stays(message: Message) -> bool:
    """Whether a message must neither be moved nor folded nor dropped."""
    inside = (part for result in message.results for part in result.parts)
    blocks = (*message.blocks, *inside)
    return any(isinstance(block, Opaque) and block.type in STAYING for block in blocks)


def group(messages: Sequence[Message], start: int = 0) -> list[Exchange]:
    """Group `messages[start:]`; `start` must be where an exchange begins."""
    ids = [_Ids(message) for message in messages[start:]]
    answers: dict[str, list[int]] = defaultdict(list)
    for i in range(len(ids) - 1, -1, -1):
        for call_id in (*ids[i].answered, *ids[i].closed):
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

    __slots__ = (
        "answered",
        "called",
        "closed",
        "is_assistant",
        "opened",
        "refers",
        "stays",
        "thinks",
    )

    def __init__(self, message: Message) -> None:
        self.is_assistant = message.role == "assistant"
        self.stays = stays(message)
        self.thinks = bool(message.blocks) and isinstance(message.blocks[-1], Thinking)
        self.called = [b.id for b in message.blocks if isinstance(b, ToolCall)]
        self.answered = [b.call_id for b in message.blocks if isinstance(b, ToolResult)]
        opaque = [b for b in message.blocks if isinstance(b, Opaque)]
        self.opened = [b.opens for b in opaque if b.opens]
        self.closed = [b.closes for b in opaque if b.closes]
        self.refers = any(b.type == "item_reference" for b in opaque)
        """It stands for an item that the provider keeps, which may be a call."""


def _extent(ids: list[_Ids], start: int, answers: dict[str, list[int]]) -> tuple[int, bool]:
    """Where the exchange that begins at `start` ends, and whether it is complete."""
    if ids[start].answered:
        return start + 1, False  # a result whose call is gone
    if not ids[start].is_assistant and not ids[start].opened:
        return start + 1, True

    must_reach = start  # the last message that answers a call seen so far
    has_calls = has_results = False
    complete = True
    staying = ids[start].stays
    stop = start
    while stop < len(ids):
        this = ids[stop]
        answering = bool(this.answered) and has_calls
        # Items or messages of one assistant turn stay together until its results begin; reasoning
        # stays with the item that it led to.
        talking = this.is_assistant and not has_results
        apart = this.stays != staying and not ids[stop - 1].thinks
        if stop > must_reach and not answering and (apart or not talking):
            break
        for call_id in this.called:
            answer = _answer(answers[call_id], stop)
            must_reach = max(must_reach, answer)
            complete = complete and answer > stop
        for block_id in this.opened:
            # What the provider runs itself may be unanswered, as in a turn that paused.
            must_reach = max(must_reach, _answer(answers[block_id], stop))
        staying = this.stays
        has_calls = has_calls or bool(this.called) or this.refers
        has_results = has_results or bool(this.answered)
        stop += 1
    return stop, complete


def _answer(waiting: list[int], after: int) -> int:
    """The nearest answer behind a message, of those that wait; `after` if there is none."""
    while waiting and waiting[-1] <= after:
        waiting.pop()
    return waiting[-1] if waiting else after
