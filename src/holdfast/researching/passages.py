"""Sources cut into passages that can be quoted, each with its exact place.

passages: after records. A passage is a run of whole sentences or lines of a stored text, of some 80
tokens; it is known by its characters in the text, so that what is quoted is what stands there. Work
is linear in the text, and of a very long one only the first 2 MB are cut: the rest is searched by
nobody, and the table of sources says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

MOST_CHARACTERS = 2_000_000
WHOLE = 500
"""Characters of a paragraph that stays whole: it speaks of one thing."""
RUN = 320
"""Characters of a run of sentences of a longer one."""
_LONGEST = 800
"""Characters after which a run without an end is cut between words: code, tables, one long line."""

# The end of a sentence, of a paragraph, or of a line that is followed by a mark of a list.
_PARAGRAPH = re2.compile(r"\n[ \t\r]*\n\s*|\f\s*")
_SENTENCE = re2.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]|\n\s*")  # noqa: RUF001 - as people write it
_SENTENCE_ONLY = re2.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]")  # noqa: RUF001
_WRAPPED = re2.compile(r"\n[ \t]*\p{Ll}")
_HEADING = re2.compile(r"#{1,6} [^\n]{1,200}")
_GAP = re2.compile(r"\s+")


class Passage(NamedTuple):
    """A part of a source, by the characters of its text."""

    source: int
    """Which source, by its number among those that are searched."""
    start: int
    stop: int


def cut_up(text: str, source: int) -> list[Passage]:
    """The passages of a text in their order; white space around them is in none."""
    passages: list[Passage] = []
    heading = -1
    for span in _spans(text[:MOST_CHARACTERS]):
        start, stop = _trimmed(text, *span)
        if start >= stop:
            continue
        if _HEADING.fullmatch(text[start:stop]):  # it says nothing without what it is above
            heading = start if heading < 0 else heading
            continue
        passages.append(Passage(source, heading if heading >= 0 else start, stop))
        heading = -1
    return passages


def sentences(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """The sentences of a span, by the characters of the text, without what is between them."""
    ends = [*_ends(text, start, stop)]
    spans = (_trimmed(text, a, b) for a, b in zip([start, *ends], ends, strict=False))
    return [(a, b) for a, b in spans if a < b]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for gap in _PARAGRAPH.finditer(text):
        yield from _runs(text, begin, gap.start())
        begin = gap.end()
    yield from _runs(text, begin, len(text))


def _runs(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """A paragraph whole, or as runs of its sentences."""
    if stop - start <= WHOLE:
        yield start, stop
        return
    begin = end = start
    for sentence_end in _ends(text, start, stop):
        if end > begin and sentence_end - begin > RUN:
            yield begin, end
            begin = end
        end = sentence_end
    yield begin, stop


def _ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Where sentences end, what is behind them included; of a long one, places between words."""
    begin = start
    # Prose that was wrapped goes on in small letters: there the end of a line ends nothing.
    lines = text.count("\n", start, stop)
    wrapped = len(_WRAPPED.findall(text[start:stop])) > 0.4 * lines if lines else False
    for match in (_SENTENCE_ONLY if wrapped else _SENTENCE).finditer(text, start, stop):
        yield from _cuts(text, begin, match.end())
        begin = match.end()
    yield from _cuts(text, begin, stop)


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    while end - start > _LONGEST:
        gap = _GAP.search(text, start + _LONGEST // 2, start + _LONGEST)
        start = gap.end() if gap else start + _LONGEST
        yield start
    if end > start:
        yield end


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    span = text[start:stop]
    return start + len(span) - len(span.lstrip()), stop - (len(span) - len(span.rstrip()))
