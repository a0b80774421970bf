"""Places in a content that is no plain JSON, though JSON was found in it.

spots: after main_rows and spans. `expand_ref` opens paths only where all of the content is JSON.
With prose around it, inside a string, or as Python prints it, a row is named by its lines, or by
its characters if the lines are long.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from itertools import accumulate

import msgspec

from holdfast.condense.condenser import Note, Passage
from holdfast.condense.document import Document, document
from holdfast.condense.main_rows import Steps, main_rows, path_to
from holdfast.condense.once import once
from holdfast.condense.source import Source
from holdfast.condense.spans import Span, where

# Whatever is no bracket is passed over in one go, strings with the brackets in them as well.
_BRACKET = re.compile(
    r"""(?:[^\[\]{}()"']++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')*+"""
    r"""([\[\]{}()"'])""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}|.)")


def placed_notes(source: Source, notes: Iterable[Note]) -> list[Note]:
    """The same notes with places that can be opened."""
    spot = _spot(source)
    if spot is None:
        return list(notes)
    return [msgspec.structs.replace(note, where=spot(note.where)) for note in notes]


def placed_passages(source: Source, passages: list[Passage]) -> list[Passage]:
    """The same passages with places that can be opened."""
    spot = _spot(source)
    if spot is None:
        return passages
    return [Passage(passage.text, spot(passage.where)) for passage in passages]


@once
def _spot(source: Source) -> Callable[[str], str] | None:
    """What turns a path into a place in the text; None where paths can be opened."""
    found, rows = document(source), main_rows(source)
    if found is None or found.form in ("json", "lines"):
        return _to_string(found.sealed) if found and found.sealed else None
    raw = _unread(source, found)
    whole = where(source, 0, len(source.text))
    prefix = f"{rows.path}[" if rows else "\0"
    spans = _row_spans(found.text, len(rows.items)) if rows else []

    @cache
    def row(number: int) -> str:
        begin, end = spans[number]
        return where(source, raw(found.begin + begin), raw(found.begin + end))

    def spot(place: str) -> str:
        number = place.removeprefix(prefix).partition("]")[0]
        if spans and place.startswith(prefix) and number.isdecimal():
            return row(int(number))
        return whole if "$" in place else place

    return spot


def _to_string(sealed: tuple[Steps, ...]) -> Callable[[str], str]:
    """Name the string instead of what stands inside it."""
    paths = [path_to(steps) for steps in sealed]

    def spot(place: str) -> str:
        path = place.rpartition(" of ")[2]
        return next((one for one in paths if path.startswith(one)), place)

    return spot


def _unread(source: Source, found: Document) -> Callable[[int], int]:
    """From an offset in the text that was found to one in the source; a string has escapes."""
    if not found.in_string:
        return lambda offset: min(offset, len(source.text))
    first = source.text.index('"') + 1
    escapes = [escape.span() for escape in _ESCAPE.finditer(source.text, first)]
    starts = [start for start, _ in escapes]
    longer = list(accumulate(end - start - 1 for start, end in escapes))
    after = [at - first - more for at, more in zip(starts, [0, *longer], strict=False)]

    def raw(offset: int) -> int:
        before = bisect_right(after, offset - 1)
        return first + offset + (longer[before - 1] if before else 0)

    return raw


def _row_spans(text: str, count: int) -> list[Span]:
    """Where the rows stand: the members of the widest array that has as many."""
    best: list[Span] = []
    stack: list[tuple[int, list[Span]]] = []
    for token in _BRACKET.finditer(text):
        sign = token[1]
        if sign in "[{(":
            stack.append((token.start(1), []))
        elif sign in "]})" and stack:
            start, members = stack.pop()
            if len(members) == count and (not best or _width(members) > _width(best)):
                best = members
            if stack:
                stack[-1][1].append((start, token.end()))
    return best


def _width(spans: list[Span]) -> int:
    return spans[-1][1] - spans[0][0]
