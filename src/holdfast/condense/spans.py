"""Spans of a text: their positions, quotation, and cutting of long ones.

A span is a pair of offsets into the text, the second excluded. Cuts and quotes end at the end of a
sentence, a line or a word, if possible.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from holdfast.condense.condenser import Passage
from holdfast.condense.cutting import last_break, shortened
from holdfast.condense.source import Source

Span = tuple[int, int]
_T = TypeVar("_T")

MANY_CHARS = 200_000
"""A text of fewer characters is cut as finely as its kind wants."""
MOST_PASSAGES = 16_000
"""Maximum number of passages of a long text, about: it is then searched in parts of at least 60
characters in each megabyte."""

LONGEST = 1200
"""The most characters of a passage, unless it is one thing that must not be torn."""
SHORTEST = 200
"""Paragraphs are joined until they have as many."""
WRAPPER = 1200
"""Characters in which the wrapper of an output must begin."""
LONG_LINE = 2000
"""A line of more characters is addressed by characters: opening it whole would help nobody."""

# These use `re`: most run on a window of a long text, which RE2 would encode again each time. They
# are linear: unbounded repeats are possessive, and follow a newline that no other match can begin
# with.
_BLANK = re.compile(r"\n[ \t\r]*+\n\s*+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]{0,3}\s|[。！？]")  # noqa: RUF001 Chinese ends
_TAG_FIRST = re.compile(r"\s{0,20}<[a-z_]{1,20}>")
_OUTPUT = re.compile(r"<(?:output|output_head|stdout|result)>[ \t\r]*\n")
_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}[A-Za-z]")
_SPACE = re.compile(r"\s")


def without_colours(source: Source) -> Source:
    """The source as a terminal would show it, without codes of colours; its lines stay the same."""
    if b"\x1b[" not in source.data:
        return source
    return Source(_COLOUR.sub(b"", source.data), tool=source.tool, url=source.url)


def head(source: Source, size: int) -> str:
    """Return the beginning of a content; for a shell tool's tagged result, that of the output."""
    text = source.data[: size + WRAPPER].decode("utf-8", "replace")
    if _TAG_FIRST.match(text) and (output := _OUTPUT.search(text, 0, WRAPPER)):
        text = text[output.end() :]
    return text[:size]


def until_next(starts: Sequence[int], end: int) -> list[Span]:
    """Spans that each go from one start to the next, the last to the end."""
    return list(zip(starts, [*starts[1:], end][: len(starts)], strict=True))


def line_spans(text: str, begin: int, end: int) -> Iterator[Span]:
    """Each line of a span, without its end, one at a time: a list of a million takes much room."""
    while begin < end:
        stop = text.find("\n", begin, end)
        stop = end if stop < 0 else stop
        yield begin, stop
        begin = stop + 1


def both_ends(things: Iterable[_T], first: int, last: int) -> tuple[list[_T], int]:
    """Return the first and the last few items of an iterable of any length, and its length."""
    waiting = iter(things)
    ends = list(islice(waiting, first))
    behind: deque[_T] = deque(maxlen=last)
    count = len(ends)
    for item in waiting:
        behind.append(item)
        count += 1
    return [*ends, *behind], count


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def lines_where(first: int, last: int) -> str:
    """Lines `first` to `last` in source units."""
    return f"lines {first}-{last}"


def where(source: Source, start: int, end: int) -> str:
    """A span in source units: lines, or characters inside a line too long to be opened."""
    first = source.line_at(start)
    begin, stop = _line(source, first)
    last = first
    long = stop - begin > LONG_LINE
    if end > stop:
        last = source.line_at(end - 1)
        begin, stop = _line(source, last)
        long = long or stop - begin > LONG_LINE
    return f"characters {start}-{end}" if long else lines_where(first, last)


def _line(source: Source, number: int) -> Span:
    starts = source.line_starts
    return starts[number - 1], starts[number] if number < len(starts) else len(source.text)


def quote(text: str, most: int = 200) -> str:
    """A text on one line, its end left out where it is longer than `most`; nothing is torn."""
    line = text[: 4 * most].strip()
    if "\n" in line:
        line = " ".join(line.split())
    return shortened(line, most, goes_on=len(text) > 4 * most)


def first_sentence(text: str, most: int = 200) -> str:
    """The first sentence of a text, quoted."""
    match = _SENTENCE_END.search(text, 20, most)
    return quote(text[: match.end()] if match else text, most)


def cut(
    text: str, start: int, end: int, most: int = LONGEST, *, by: str = "sentence"
) -> Iterator[Span]:
    """Cut a span into pieces of at most `most` characters, by `sentence` or by `line`."""
    while end - start > most:
        at = _place_to_cut(text, start + most // 3, start + most, by)
        yield start, at
        start = at
    if start < end:
        yield start, end


def _place_to_cut(text: str, first: int, last: int, by: str) -> int:
    ends = _SENTENCE_END.finditer(text, first, last) if by == "sentence" else ()
    if at := max((match.end() for match in ends), default=0):
        return at
    if (newline := text.rfind("\n", first, last)) > 0:
        return newline + 1
    space = max((match.end() for match in _SPACE.finditer(text, first, last)), default=0)
    return space or (at if (at := last_break(text, first, last)) > first else last)


def paragraphs(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield the paragraphs between blank lines: short ones joined, long ones cut."""
    end = len(text) if end is None else end
    for match in _BLANK.finditer(text, start, end):
        if match.end() - start >= SHORTEST:
            yield from cut(text, start, match.end())
            start = match.end()
    yield from cut(text, start, end)


def joined(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The same spans, those of a very long text joined until each has some length.

    Half a million lines of one letter would make passages of a hundred times their size.
    """
    least = len(text) // MOST_PASSAGES if len(text) > MANY_CHARS else 0
    begin = stop = 0
    for start, end in spans:
        if start != stop or stop - begin >= least:
            if begin < stop:
                yield begin, stop
            begin = start
        stop = end
    if begin < stop:
        yield begin, stop


def passages_of(source: Source, spans: Iterable[Span]) -> list[Passage]:
    """Spans as passages; those of white space only are left out."""
    text = source.text
    passages = []
    for start, end in joined(text, spans):
        quoted = text[start:end].rstrip()
        if quoted and not quoted.isspace():
            passages.append(Passage(quoted, where(source, start, start + len(quoted))))
    return passages
