"""Split a long content into consecutive pieces that a summariser accepts.

A piece starts where the previous one ends, so nothing is omitted or repeated. Its end depends only
on the text near it, so appending to a content changes only the last pieces and other summaries stay
cached. `semantic-text-splitter` 0.33 is not used: for text without spaces it is quadratic (3 s for
1 MB of base64, an hour for 20 MB), and content is hostile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.condense.digest import Count
from holdfast.condense.spans import cut

_CHARACTERS_PER_TOKEN = 4
"""First estimate; texts have 3 to 5, and a longer piece is shortened."""
_TOO_LONG = 0.95
"""Next attempt as a share of the exact proportion, because tokens are distributed unevenly."""


class Chunk(NamedTuple):
    """A piece of a content, by its character offsets."""

    start: int
    stop: int
    tokens: int


def chunks(text: str, most: int, counted: Count) -> Iterator[Chunk]:
    """Yield pieces of at most `most` tokens; only a single character may exceed it."""
    start = 0
    while start < len(text):
        stop, tokens = _reach(text, start, most, counted)
        if stop < len(text):
            stop = _end(text, start, stop)
            tokens = counted(text[start:stop])
        yield Chunk(start, stop, tokens)
        start = stop


def _reach(text: str, start: int, most: int, counted: Count) -> tuple[int, int]:
    """Return the latest end offset for a chunk that starts here, and its tokens."""
    size = max(1, most * _CHARACTERS_PER_TOKEN)
    while True:
        window = text[start : start + size]
        tokens = counted(window)
        if tokens <= most or len(window) == 1:
            return start + len(window), tokens
        size = max(1, min(len(window) - 1, int(len(window) * most / tokens * _TOO_LONG)))


def _end(text: str, start: int, stop: int) -> int:
    """Return where a piece up to `stop` ends: after a paragraph, line, sentence or word."""
    first = start + (stop - start) * 2 // 3
    paragraph = text.rfind("\n\n", first, stop)
    if paragraph >= 0:
        return paragraph + 2
    line = text.rfind("\n", first, stop)
    if line >= 0:
        return line + 1
    # Include one more character, so that `cut` splits the text instead of returning it complete.
    return next(cut(text, start, stop + 1, stop - start))[1]
