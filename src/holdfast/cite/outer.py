"""Quote the beginning and the end of a content for a larger citation.

outer: after citation, before composition. Agents copy from text that they have read: a signature,
the lines around an edit, a row. Plain text is quoted in whole lines. JSON and markup are quoted in
the passages of their condenser, because half an object or a screen of tags is useless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.cite.citation import count
from holdfast.condense.condenser import Condenser, Note
from holdfast.condense.cutting import first_break, last_break
from holdfast.condense.places import without_path
from holdfast.condense.source import Source
from holdfast.condense.spans import Span, where, without_colours
from holdfast.quoting import item

HEAD_SHARE = 0.6
"""Share for the beginning; the remaining share is for the end."""
_MARKUP = ("html", "xml")
_LINE_SHARE = 4
"""A part ends with a whole line if that costs at most one part in four."""
_PLACE_TOKENS = 10
"""Tokens of `- lines 1201-1240: `."""
_TRIES = 6


def outer(source: Source, condenser: Condenser, tokens: int, room: int) -> list[Note]:
    """Return the beginning and the end of a content with `tokens`, in about `room` tokens."""
    if source.document is not None or condenser.kind in _MARKUP:
        return _outer_passages(source, condenser, room)
    plain = without_colours(source)
    signs = len(plain.text) / max(1, tokens)
    return [
        Note("sample", plain.text[start:end], where(plain, start, end))
        for start, end in _outer_spans(plain.text, room, signs)
    ]


def _outer_spans(text: str, room: int, signs: float) -> Iterator[Span]:
    head = _until_it_fits(
        (text[: head_end(text, size)] for size in _sizes(room * HEAD_SHARE, signs)),
        room * HEAD_SHARE,
    )
    tail_room = room - count(head) if head else room * (1 - HEAD_SHARE)
    tail = _until_it_fits(
        (text[tail_start(text, len(head), size) :] for size in _sizes(tail_room, signs)), tail_room
    )
    if head.strip():
        yield 0, len(head)
    if tail.strip():
        yield len(text) - len(tail), len(text)


def _sizes(room: float, signs: float) -> list[int]:
    """Return sizes in characters to try, in falling order, because token density varies."""
    most = (room - _PLACE_TOKENS) * signs
    return [int(most * 0.85**n) for n in range(_TRIES)]


def _until_it_fits(parts: Iterable[str], room: float) -> str:
    fitting = (part for part in parts if count(item(part)) + _PLACE_TOKENS <= room)
    return next(fitting, "")


def head_end(text: str, most: int) -> int:
    """Return the end offset of a beginning of at most `most` characters."""
    if most >= len(text):
        return len(text)
    if most <= 0:
        return 0
    line = text.rfind("\n", most - most // _LINE_SHARE, most) + 1
    return line or last_break(text, 0, most)


def tail_start(text: str, low: int, most: int) -> int:
    """Return the start offset of an end of at most `most` characters, not before `low`."""
    start = len(text) - most
    if start <= low:
        return low
    if most <= 0:
        return len(text)
    line = text.find("\n", start - 1, start + most // _LINE_SHARE) + 1
    return line or first_break(text, start, len(text))


def _outer_passages(source: Source, condenser: Condenser, room: int) -> list[Note]:
    passages = condenser.passages(source)
    first = _fitting(
        (Note("sample", without_path(p), p.where) for p in passages), room * HEAD_SHARE
    )
    behind = passages[len(first) :]
    tail_room = room - sum(cost for _, cost in first)
    last = _fitting((Note("sample", without_path(p), p.where) for p in reversed(behind)), tail_room)
    return [note for note, _ in [*first, *reversed(last)]]


def _fitting(notes: Iterable[Note], room: float) -> list[tuple[Note, int]]:
    """Return the notes that fit with their tokens, up to the first that does not fit."""
    priced = []
    for note in notes:
        cost = count(item(f"{note.where}: {note.text}"))
        room -= cost
        if room < 0:
            break
        priced.append((note, cost))
    return priced
