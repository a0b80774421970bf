"""A long content in pieces that a summariser can take, which together are all of it.

chunking: after levels. Each piece begins where the one before ended, whatever was chosen as its
end, so that nothing is left out and nothing told twice (X04). Where a piece ends depends only on
what stands in the four characters a token behind its beginning: what is appended to a content
changes the pieces near its end, and the summaries of all others stand.

Not `semantic-text-splitter` 0.33: on a text without spaces it takes sixteen times as long for four
times the text (3 s for a megabyte of base64, an hour for twenty), and content is hostile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.condense.spans import cut
from holdfast.models.digest import Count

_CHARACTERS_PER_TOKEN = 4
"""What is tried first; texts have 3 to 5, and what turns out to be too long is shortened."""
_TOO_LONG = 0.95
"""Share of what would fit exactly that is tried next: tokens are not spread evenly."""


class Chunk(NamedTuple):
    """A piece of a content, by its characters."""

    start: int
    stop: int
    tokens: int


def chunks(text: str, most: int, counted: Count) -> Iterator[Chunk]:
    """Pieces of at most so many tokens each; only a single character may have more."""
    start = 0
    while start < len(text):
        stop, tokens = _reach(text, start, most, counted)
        if stop < len(text):
            stop = _end(text, start, stop)
            tokens = counted(text[start:stop])
        yield Chunk(start, stop, tokens)
        start = stop


def _reach(text: str, start: int, most: int, counted: Count) -> tuple[int, int]:
    """How far a piece from here may go."""
    size = max(1, most * _CHARACTERS_PER_TOKEN)
    while True:
        window = text[start : start + size]
        tokens = counted(window)
        if tokens <= most or len(window) == 1:
            return start + len(window), tokens
        size = max(1, min(len(window) - 1, int(len(window) * most / tokens * _TOO_LONG)))


def _end(text: str, start: int, stop: int) -> int:
    """Where a piece that may go up to `stop` ends: at a paragraph, a line, a sentence or a word."""
    first = start + (stop - start) * 2 // 3
    paragraph = text.rfind("\n\n", first, stop)
    if paragraph >= 0:
        return paragraph + 2
    line = text.rfind("\n", first, stop)
    if line >= 0:
        return line + 1
    # One character is left behind the piece, so that it is cut and not given back as it is.
    return next(cut(text, start, stop + 1, stop - start))[1]
