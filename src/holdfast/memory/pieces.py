"""Split a turn into pieces that can be recalled alone.

Measured on dialogues and long chats: turns of up to 160 tokens are worth more whole; longer ones
are better split into runs of sentences of about 64 tokens, so that a budget holds the answer and
not the text around it. Only the beginning of a very long turn is split: the end can be read, not
recalled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

WHOLE_TOKENS = 160
RUN_TOKENS = 64
MOST_CHARACTERS = 60_000
"""Maximum characters of a turn that are split: about 200 pieces."""
_LONG_SENTENCE = 600
"""Characters after which a run without a sentence end is cut between words: code, tables, lists."""

# The end of a sentence or of a line.
_END = re2.compile(r"[.!?…]+[\"'”’)\]]*\s+|\n+\s*")  # noqa: RUF001 - as people write it
_GAP = re2.compile(r"\s+")


class PieceSpan(NamedTuple):
    """A piece of a text, by character offsets."""

    start: int
    end: int
    tokens: int


def split_pieces(text: str, tokens: int, count: Callable[[str], int]) -> list[PieceSpan]:
    """Return the pieces of a text; together they cover its first MOST_CHARACTERS."""
    if tokens <= WHOLE_TOKENS:
        return [PieceSpan(0, len(text), tokens)]
    pieces: list[PieceSpan] = []
    start = end = piece_tokens = 0
    for sentence_end in _sentence_ends(text[:MOST_CHARACTERS]):
        size = count(text[end:sentence_end])
        if piece_tokens and piece_tokens + size > RUN_TOKENS:
            pieces.append(PieceSpan(start, end, piece_tokens))
            start, piece_tokens = end, 0
        end, piece_tokens = sentence_end, piece_tokens + size
    if end > start:
        pieces.append(PieceSpan(start, end, piece_tokens))
    return pieces


def _sentence_ends(text: str) -> Iterator[int]:
    """Yield the end offset of each sentence, with the space after it.

    Long sentences are cut at spaces.
    """
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


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, for code that compares texts by sentence."""
    ends = list(_sentence_ends(text))
    return [text[a:b].strip() for a, b in zip([0, *ends], ends, strict=False) if text[a:b].strip()]
