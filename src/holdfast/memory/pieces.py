"""A turn in pieces that can be recalled alone: whole if it is short, else runs of sentences.

pieces: after words. Measured on dialogues and long chats: turns of up to 160 tokens are worth more
whole; of longer ones, runs of about 64 tokens let a budget hold what answers and not what is around
it. Only the beginning of a very long turn is taken apart: the rest can be opened, but not recalled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

WHOLE_TOKENS = 160
RUN_TOKENS = 64
MOST_CHARACTERS = 60_000
"""Of a turn that are taken apart: some 200 pieces."""
_LONG_SENTENCE = 600
"""Characters after which a run without an end is cut between words: code, tables, lists."""

# The end of a sentence, or of a line: what follows begins anew.
_END = re2.compile(r"[.!?…]+[\"'”’)\]]*\s+|\n+\s*")  # noqa: RUF001 - as people write it
_GAP = re2.compile(r"\s+")


class Span(NamedTuple):
    """A piece of a text by its characters."""

    start: int
    end: int
    tokens: int


def pieces_of(text: str, tokens: int, count: Callable[[str], int]) -> list[Span]:
    """The pieces of a text that has so many tokens; together they hold all that is taken apart."""
    if tokens <= WHOLE_TOKENS:
        return [Span(0, len(text), tokens)]
    pieces: list[Span] = []
    start = end = held = 0
    for sentence_end in _sentence_ends(text[:MOST_CHARACTERS]):
        size = count(text[end:sentence_end])
        if held and held + size > RUN_TOKENS:
            pieces.append(Span(start, end, held))
            start, held = end, 0
        end, held = sentence_end, held + size
    if end > start:
        pieces.append(Span(start, end, held))
    return pieces


def _sentence_ends(text: str) -> Iterator[int]:
    """Where sentences end, what is between them included; of a long one, places between words."""
    start = 0
    for match in _END.finditer(text):
        yield from _cuts(text, start, match.end())
        start = match.end()
    yield from _cuts(text, start, len(text))


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    while end - start > _LONG_SENTENCE:
        gap = _GAP.search(text, start + _LONG_SENTENCE // 2, start + _LONG_SENTENCE)
        start = gap.end() if gap else start + _LONG_SENTENCE
        yield start
    if end > start:
        yield end


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, for whoever compares texts by them."""
    ends = list(_sentence_ends(text))
    return [text[a:b].strip() for a, b in zip([0, *ends], ends, strict=False) if text[a:b].strip()]
