"""Split sources into passages that can be quoted, each with its exact place.

A passage is a run of whole sentences or lines of about 80 tokens. Splitting takes linear time; of a
very long text only the first 2 MB are split, which the table of sources notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

MOST_CHARACTERS = 2_000_000
WHOLE = 500
"""Maximum characters of a paragraph that is not split."""
RUN = 320
"""Maximum characters of a run of sentences of a longer paragraph."""
_LONGEST = 800
"""Characters after which a run without a sentence end is cut between words: code, tables, long
lines."""

# The end of a sentence, a paragraph or a line.
_PARAGRAPH = re2.compile(r"\n[ \t\r]*\n\s*|\f\s*")
_SENTENCE = re2.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]|\n\s*")  # noqa: RUF001 - as people write it
_SENTENCE_ONLY = re2.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]")  # noqa: RUF001
_WRAPPED = re2.compile(r"\n[ \t]*\p{Ll}")
_HEADING = re2.compile(r"#{1,6} [^\n]{1,200}")
_GAP = re2.compile(r"\s+")


class SourcePassage(NamedTuple):
    """A part of a source, by character offsets."""

    source: int
    """Number of the source among those searched."""
    start: int
    stop: int


def split_passages(text: str, source: int) -> list[SourcePassage]:
    """Return the passages of a text in order, without surrounding white space."""
    passages: list[SourcePassage] = []
    heading = -1
    for span in _spans(text[:MOST_CHARACTERS]):
        start, stop = _trim(text, *span)
        if start >= stop:
            continue
        # a heading on its own has no content; it joins the next passage
        if _HEADING.fullmatch(text[start:stop]):
            heading = start if heading < 0 else heading
            continue
        passages.append(SourcePassage(source, heading if heading >= 0 else start, stop))
        heading = -1
    return passages


def sentences(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Return the sentences of a span as character offsets."""
    ends = [*_ends(text, start, stop)]
    spans = (_trim(text, a, b) for a, b in zip([start, *ends], ends, strict=False))
    return [(a, b) for a, b in spans if a < b]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for gap in _PARAGRAPH.finditer(text):
        yield from _runs(text, begin, gap.start())
        begin = gap.end()
    yield from _runs(text, begin, len(text))


def _runs(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield a whole paragraph, or runs of its sentences."""
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
    """Yield the end offset of each sentence, with the space after it. Long sentences are cut."""
    begin = start
    # In wrapped prose most lines continue in lower case, so that a line end does not end a
    # sentence.
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


def _trim(text: str, start: int, stop: int) -> tuple[int, int]:
    span = text[start:stop]
    return start + len(span) - len(span.lstrip()), stop - (len(span) - len(span.rstrip()))
