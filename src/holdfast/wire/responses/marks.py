"""Apply the client's cache marks to messages sent in place of its own.

A restored turn has calls that the client never saw, and a result may be sent as a citation; the
client marks its own versions and moves its marks with each request. Marks are moved and never
copied, because Anthropic accepts at most four (headroom#2939) and the client counts its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.wire import DIALECTS, Message
from holdfast.wire.places import CACHE_MARKS, CACHE_POINT, is_point, without_marks
from holdfast.wire.strict import encode
from holdfast.wire.values import take

_MARKS = tuple(f'"{name}"'.encode() for name in (*CACHE_MARKS, CACHE_POINT))
_UNMARKABLE = ("thinking", "redacted_thinking")
_IDS = (("id",), ("tool_use_id",), ("toolUse", "toolUseId"), ("toolResult", "toolUseId"))
"""Position of the id of a call or its result in a part."""
_WHOLE = ("content", "output", "parts")
"""Fields of a message that contain its parts or a text."""


class _Spot(NamedTuple):
    """A part of a message that may be marked."""

    message: int
    place: int
    part: Any


class _Mark(NamedTuple):
    """A client's mark and the part that carries it."""

    name: str
    value: Any
    part: Any
    place: int
    """Index of the part among all parts of the client's messages."""


def is_marked(message: Message) -> bool:
    """Return whether a message may contain a cache mark."""
    return any(map(message.holds, _MARKS))


def with_marks(messages: Sequence[Message], shown: Sequence[Message]) -> list[Message]:
    """Return messages with exactly the marks of `shown`, the client's version of them.

    A mark at the end of the client's version caches everything up to there, so it goes to the end
    of the last message of the same role. Other marks stay on their part, or are dropped with it. A
    message without marks before and after is returned unchanged.
    """
    if not any(map(is_marked, (*messages, *shown))):
        return list(messages)
    values = [without_marks(message.value) for message in messages]
    role = shown[-1].role if shown else ""
    spots = [
        _Spot(n, place, part)
        for n, value in enumerate(values)
        if messages[n].role == role
        for place, part in enumerate(_parts(value, messages[n].dialect))
        if _takes_mark(part)
    ]
    marks, number = _marks_of(shown)
    if spots and marks:
        chosen = _spots_for(marks, spots, number)
        for spot, mark in sorted(chosen.items(), reverse=True):
            _set_mark(values[spot[0]], spot[1], mark, messages[spot[0]].dialect)
    return [
        message if value == message.parsed else _written(value, message)
        for message, value in zip(messages, values, strict=True)
    ]


def _written(value: Any, message: Message) -> Message:
    return Message(encode(value), message.role, DIALECTS[message.dialect])


def _field(value: Any) -> str:
    """Return the field of a message that contains its parts; empty if it has none."""
    if not isinstance(value, dict):
        return ""
    return next((name for name in _WHOLE if isinstance(value.get(name), (str, list))), "")


def _parts(value: Any, dialect: str) -> list[Any]:
    """Return the parts of a message; a text is a single part."""
    field = _field(value)
    content = value[field] if field else []
    if isinstance(content, str):
        return [{"type": _text_kind(value, dialect), "text": content}] if content else []
    return list(content)


def _text_kind(value: Any, dialect: str) -> str:
    if dialect != "openai-responses":
        return "text"
    return "output_text" if value.get("role") == "assistant" else "input_text"


def _takes_mark(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    blank = part.get("type") == "text" and not take(part, "text").strip()
    return part.get("type") not in _UNMARKABLE and not blank


def _marks_of(shown: Sequence[Message]) -> tuple[list[_Mark], int]:
    """Return the marks on the client's messages, in order, and the number of their parts."""
    marks: list[_Mark] = []
    parts: list[Any] = []
    for message in shown:
        for part in _parts(message.parsed, message.dialect):
            if not is_point(part):
                parts.append(part)
                marks += [_Mark(name, mark, part, len(parts) - 1) for name, mark in _on(part)]
            elif parts:  # a cache point follows the part that it marks
                marks.append(_Mark(CACHE_POINT, part[CACHE_POINT], parts[-1], len(parts) - 1))
    return marks, len(parts)


def _on(part: Any) -> list[tuple[str, Any]]:
    """Return the mark on a part, or on the last part inside it."""
    inside = part.get("content") if isinstance(part, dict) else None
    holders = (part, *(inside[-1:] if isinstance(inside, list) else ()))
    marks = [
        (name, holder[name])
        for holder in holders
        if isinstance(holder, dict)
        for name in CACHE_MARKS
        if holder.get(name) is not None
    ]
    return marks[:1]


def _spots_for(
    marks: Sequence[_Mark], spots: Sequence[_Spot], number: int
) -> dict[tuple[int, int], _Mark]:
    """Return the position of each mark, by message and part; marks of missing parts are dropped."""
    by_key = {key: spot for spot in reversed(spots) if (key := _key(spot.part))}
    chosen: dict[tuple[int, int], _Mark] = {}
    for mark in marks:
        if mark.place == number - 1:
            spot: _Spot | None = spots[-1]
        else:
            # A cited or cut part has other text but the same position.
            same_spot = spots[mark.place] if len(spots) == number else None
            spot = by_key.get(_key(mark.part), same_spot)
        if spot is not None:
            chosen[spot.message, spot.place] = mark
    return chosen


def _key(part: Any) -> str:
    """Return what identifies a part: the id of a call or result, or its text."""
    name = next(filter(None, (take(part, *path) for path in _IDS)), "")
    return f"id {name}" if name else take(part, "text")


def _set_mark(value: Any, place: int, mark: _Mark, dialect: str) -> None:
    parts = _parts(value, dialect)
    if mark.name == CACHE_POINT:
        parts.insert(place + 1, {CACHE_POINT: mark.value})
    else:
        parts[place] = {**parts[place], mark.name: mark.value}
    value[_field(value)] = parts
