"""The client's cache marks on a turn that is replaced by the one the provider wrote.

marks: after turns, before rejoining. Only Anthropic marks blocks of messages. A mark is moved,
never copied: the provider takes at most four of them (rule A14), and the client counts its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.wire import DIALECTS, Message
from holdfast.wire.answers.shared import dicts
from holdfast.wire.strict import encode

_MARK = "cache_control"
_UNMARKABLE = ("thinking", "redacted_thinking")
Spot = tuple[int, int]
"""A message, and a block of it."""


def with_marks(whole: Sequence[Message], shown: Sequence[Message]) -> list[Message]:
    """The messages of a turn with the marks that the client put on its version of it.

    A mark on the end of the client's version says that all up to there is to be cached, so it
    stands on the end of the turn; one inside stays on its block, if that is still there.
    """
    messages = list(whole)
    if not whole or whole[0].dialect != "anthropic" or not any(map(_may_be_marked, shown)):
        return messages
    blocks = [block for message in shown for block in dicts(message.value.get("content"))]
    values = [message.value for message in messages]
    spots = [spot for spot in _spots(values) if _takes_mark(values[spot[0]], spot[1])]
    changed: set[int] = set()
    for block in blocks:
        if block.get(_MARK) is None or not spots:
            continue
        spot = spots[-1] if block is blocks[-1] else _same(block, values, spots)
        if spot is not None:
            values[spot[0]]["content"][spot[1]][_MARK] = block[_MARK]
            changed.add(spot[0])
    for n in changed:
        messages[n] = Message(encode(values[n]), messages[n].role, DIALECTS["anthropic"])
    return messages


def _may_be_marked(message: Message) -> bool:
    return b'"cache_control"' in bytes(message.span)


def _spots(values: Sequence[Any]) -> list[Spot]:
    return [
        (n, place)
        for n, value in enumerate(values)
        if value["role"] == "assistant" and isinstance(value["content"], list)
        for place in range(len(value["content"]))
    ]


def _takes_mark(value: Any, place: int) -> bool:
    block = value["content"][place]
    blank = block.get("type") == "text" and not block.get("text", "").strip()
    return block.get("type") not in _UNMARKABLE and not blank


def _same(block: dict[str, Any], values: Sequence[Any], spots: Sequence[Spot]) -> Spot | None:
    """Where the client's block stands in the provider's turn."""
    key = "id" if block.get("type") == "tool_use" else "text"
    for n, place in spots:
        other = values[n]["content"][place]
        if other.get("type") == block.get("type") and other.get(key) == block.get(key) is not None:
            return n, place
    return None
