"""Group messages into exchanges, the unit that is moved, folded or dropped.

A call and its results, including parallel ones, form one exchange, because providers reject them
separately; so do a server tool's use and result. A message whose position matters is an exchange of
its own: a compaction must come first because it replaces everything before it, and added or found
tools can only be called after the message that brought them.
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
        # Anthropic: must be first in the message list and is signed (errors
        # compaction_block_misplaced, _incomplete_turn).
        "compaction",
        # Anthropic: tools added in mid-conversation, and tools found by a search
        # (CLIProxyAPI#1547).
        "tool_addition",
        "tool_removal",
        "tool_reference",
        "tool_search_tool_result",
        # OpenAI Responses: the same, and the command to compact, which must come last.
        "additional_tools",
        "compaction_trigger",
        "tool_search_call",
        "tool_search_output",
        # Refers to an item stored at the provider, which may be half of a pair.
        "item_reference",
    }
)
"""Types of blocks and items that must keep their position."""


class Exchange(msgspec.Struct, frozen=True):
    """A system message, a user turn, or an assistant turn with its calls and their results."""

    kind: Kind
    """`tool` for an assistant turn with tool calls, otherwise the role."""
    start: int
    """Index of the first message."""
    messages: tuple[Message, ...]
    complete: bool = True
    """Whether every call has a result and every result a call."""

    @property
    def stays(self) -> bool:
        """Return whether it must not be moved, folded or dropped; see `stays`."""
        return any(map(stays, self.messages))

    @property
    def stop(self) -> int:
        """Return the index after the last message."""
        return self.start + len(self.messages)

    def __repr__(self) -> str:
        return f"<Exchange {self.kind}, messages {self.start} to {self.stop - 1}>"


def stays(message: Message) -> bool:
    """Return whether a message must not be moved, folded or dropped."""
    inside = (part for result in message.results for part in result.parts)
    blocks = (*message.blocks, *inside)
    return any(isinstance(block, Opaque) and block.type in STAYING for block in blocks)


def group(messages: Sequence[Message], start: int = 0) -> list[Exchange]:
    """Group `messages[start:]`; `start` must be the start of an exchange."""
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
    """The calls that a message makes and answers."""

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
        """Whether it refers to an item stored at the provider, which may be a call."""


def _extent(ids: list[_Ids], start: int, answers: dict[str, list[int]]) -> tuple[int, bool]:
    """Return the end of the exchange that starts at `start`, and whether it is complete."""
    if ids[start].answered:
        return start + 1, False  # a result without its call
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
        # Items or messages of one assistant turn stay together until its results start. Reasoning
        # stays with the item that follows it.
        talking = this.is_assistant and not has_results
        apart = this.stays != staying and not ids[stop - 1].thinks
        if stop > must_reach and not answering and (apart or not talking):
            break
        for call_id in this.called:
            answer = _answer(answers[call_id], stop)
            must_reach = max(must_reach, answer)
            complete = complete and answer > stop
        for block_id in this.opened:
            # A call that the provider runs may have no result, as in a paused turn.
            must_reach = max(must_reach, _answer(answers[block_id], stop))
        staying = this.stays
        has_calls = has_calls or bool(this.called) or this.refers
        has_results = has_results or bool(this.answered)
        stop += 1
    return stop, complete


def _answer(waiting: list[int], after: int) -> int:
    """Return the nearest answer after a message; `after` if there is none."""
    while waiting and waiting[-1] <= after:
        waiting.pop()
    return waiting[-1] if waiting else after
