"""Where a regular expression matches, with line numbers or paths and what stands beside it.

pattern: after opened. The model writes the pattern and the content may be hostile. RE2 takes time
in proportion to the text, but also to the pattern, and to each place that matches nothing: so the
text is searched window by window until the hits, the empty places or the processor's time are used
up, and the answer says how far it came.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.document import Document
from holdfast.errors import ExpandError
from holdfast.expand.opened import Opened
from holdfast.expand.region import Name, Region, blocks, listed
from holdfast.expand.rows import Nothing
from holdfast.quoting import indented, item

MOST_CHARACTERS = 1000
"""Of a pattern."""
MOST_BYTES = 32 * 1024 * 1024
"""Of the text it is tried on."""
MOST_HITS = 500
MOST_EMPTY = 20_000
"""Places where a pattern matches nothing, as `\\b` and `x*` do: each costs a step of our own, and
10 MB of them took 28 seconds."""
MOST_PROGRAM = 10_000
"""Steps that a pattern is compiled to; `(?:\\pL|\\pN){200}` has 268,000 and searches 0.1 MB/s."""
MOST_SECONDS = 2.0
"""Of the processor, for one search. `a[ab]{900}c` would take four minutes for 32 MB."""
_WINDOW_STEPS = 1 << 27
"""Bytes of a window times steps of the pattern: at most a second before the clock is looked at."""
_LEAST_WINDOW = 1 << 14
_MOST_WINDOW = 1 << 20
_OVERLAP = 8
"""A match that goes on behind its window is cut there, or, if it begins in the last eighth, left
to the next one."""
_CONTEXT_LINES = 1
_LONGEST_LINE = 400
_BESIDE = 120
"""Characters of a long line that are shown on each side of a match."""
_SMALL_PAGE = 480
"""Tokens of a page on which less is shown beside a match, so that the match itself fits."""
_MEMORY = 16 * 1024 * 1024

Hit = tuple[int, int]
"""Where a match begins and ends in the text."""
Place = int | str
"""The number of a line, or what a part of one is called."""


class _Searched(NamedTuple):
    """What a search found, and how far it came."""

    hits: list[Hit]
    characters: int
    """Of the text, that were searched; all of them unless something was used up."""
    ignored_case: bool = False


def by_pattern(opened: Opened, pattern: str, page_tokens: int) -> Region:
    """Return the places that match, in order; the first one fits on a page of so many tokens."""
    hits, characters, ignored_case = _hits(opened, pattern)
    part = ""
    if characters < len(opened.text):
        part = f" of the first {characters:,} of {len(opened.text):,} characters"
    if not hits:
        raise Nothing(f"nothing{part} matches the pattern, with or without regard to case")
    document = opened.source.document
    if document is not None and opened.base(document) == 0 and _has_long_lines(opened, hits):
        region = _in_json(document, hits, page_tokens)
    else:
        region = _in_lines(opened, hits, page_tokens)
    number = f"first {MOST_HITS}" if len(hits) >= MOST_HITS else f"{len(hits)} in all{part}"
    region.total = f" ({number}, ignoring case)" if ignored_case else f" ({number})"
    return region


def _hits(opened: Opened, pattern: str) -> _Searched:
    if len(pattern) > MOST_CHARACTERS:
        raise ExpandError(
            "the pattern is too long",
            where="options.pattern",
            fix=f"Use at most {MOST_CHARACTERS} characters.",
        )
    searched = _search(opened.text, pattern, ignore_case=False)
    if searched.hits:
        return searched
    return _search(opened.text, pattern, ignore_case=True)


def _search(text: str, pattern: str, *, ignore_case: bool) -> _Searched:
    compiled = _compiled(pattern, ignore_case=ignore_case)
    data = text.encode("utf-8", "replace")[:MOST_BYTES]
    spans: list[Hit] = []
    empty = reached = 0
    until = time.thread_time() + MOST_SECONDS
    for begin, end, next_begin in _windows(len(data), compiled.programsize):
        if time.thread_time() > until:
            break
        reached = next_begin
        for match in compiled.finditer(data, max(begin, spans[-1][1] if spans else 0), end):
            start, stop = match.span()
            if start >= next_begin:
                break
            if stop > start:
                spans.append((start, stop))
            else:
                empty += 1
            if len(spans) >= MOST_HITS or empty >= MOST_EMPTY:
                reached = stop
                break
        if len(spans) >= MOST_HITS or empty >= MOST_EMPTY:
            break
    if text.isascii():
        return _Searched(spans, reached, ignore_case)
    characters = len(data[:reached].decode("utf-8", "ignore"))
    return _Searched(_in_characters(data, spans), characters, ignore_case)


def _compiled(pattern: str, *, ignore_case: bool) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        compiled = re2.compile(f"(?m:{pattern})".encode("utf-8", "replace"), options)
    except re2.error:
        raise ExpandError(
            "the pattern is no regular expression that RE2 takes",
            where="options.pattern",
            fix="Escape signs like ( [ . with a backslash; back-references and look-around "
            "are not supported.",
        ) from None
    if compiled.programsize > MOST_PROGRAM:
        raise ExpandError(
            "the pattern repeats too much",
            where="options.pattern",
            fix="Use + or * instead of a count, or a smaller one.",
        )
    return compiled


def _windows(size: int, steps: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each begins, where it ends, and where the next one begins."""
    length = max(_LEAST_WINDOW, min(_MOST_WINDOW, _WINDOW_STEPS // max(1, steps)))
    begin = 0
    while begin < size:
        end = min(begin + length, size)
        next_begin = size if end == size else end - length // _OVERLAP
        yield begin, end, next_begin
        begin = next_begin


def _in_characters(data: bytes, spans: list[Hit]) -> list[Hit]:
    """Byte offsets as offsets into the text."""
    made, seen, at = [], 0, 0
    for start, end in spans:
        first = at + len(data[seen:start].decode("utf-8", "ignore"))
        last = first + len(data[start:end].decode("utf-8", "ignore"))
        made.append((first, last))
        seen, at = end, last
    return made


def _has_long_lines(opened: Opened, hits: list[Hit]) -> bool:
    starts = [*opened.source.line_starts, len(opened.text)]
    numbers = {opened.source.line_at(start) for start, _ in hits[:20]}
    return any(starts[number] - starts[number - 1] > _LONGEST_LINE for number in numbers)


def _in_lines(opened: Opened, hits: list[Hit], page_tokens: int) -> Region:
    """Return every line with a match and its neighbours; of a long line only the surroundings."""
    source = opened.source
    by_line: dict[int, Hit] = {}
    for start, end in hits:
        by_line.setdefault(source.line_at(start), (start, end))
    numbers = sorted(
        {
            beside
            for number in by_line
            for beside in range(number - _CONTEXT_LINES, number + _CONTEXT_LINES + 1)
            if 1 <= beside <= source.line_count
        }
    )
    texts, places = [], []
    for number in numbers:
        text, place = _line(opened, number, by_line.get(number), page_tokens)
        texts.append(text)
        places.append(place)
    return blocks(texts, _runs(places), "lines")


def _line(opened: Opened, number: int, hit: Hit | None, page_tokens: int) -> tuple[str, Place]:
    """A line with its number, `40:` has a hit, `41-` stands beside one; and what it is called."""
    text = opened.source.lines(number, number).rstrip("\r\n")
    begin = opened.source.line_starts[number - 1]
    place: Place = number
    if len(text) > min(_LONGEST_LINE, page_tokens // (2 if hit else 4)):
        start, end = (hit[0] - begin, hit[1] - begin) if hit else (0, 0)
        text, first, last = _window(text, start, min(end, len(text)), page_tokens)
        place = f"characters {begin + first}-{begin + last}"
    # Other ends of lines than ours may stand in a line, and look like the next one.
    return f"{number}{':' if hit else '-'} {indented(text)}", place


def _runs(places: Sequence[Place]) -> Name:
    """Call lines by their numbers, neighbours together, and a part of one by its characters."""

    def name(first: int, last: int) -> str:
        named: list[str] = []
        run = 0
        for place in places[first : last + 1]:
            if isinstance(place, str):
                named.append(place)
            elif run and place == run + 1:
                named[-1] = f"{named[-1].partition('-')[0]}-{place}"
            else:
                named.append(f"lines {place}-{place}")
            run = place if isinstance(place, int) else 0
        return listed(named)(0, len(named) - 1)

    return name


def _window(text: str, start: int, end: int, page_tokens: int) -> tuple[str, int, int]:
    """Return what stands around a match, and where it begins and ends."""
    beside = _BESIDE * min(page_tokens, _SMALL_PAGE) // _SMALL_PAGE
    first, last = max(0, start - beside), min(len(text), min(end, start + 200) + beside)
    marked = ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
    return marked, first, last


def _in_json(document: Document, hits: list[Hit], page_tokens: int) -> Region:
    """Return the values with a match in them; of a long value, what is around each."""
    texts: dict[str, str] = {}
    shown_to: dict[str, int] = {}
    for start, end in hits:
        node = document.node_at(start)
        if shown_to.get(node.path, -1) >= min(end, node.end):
            continue  # it stands in what is shown of the value already
        # A hit in a key stands before the value; it is shown with it.
        first, last = min(start, node.start), node.end
        text, place = document.text[first:last], node.path
        if len(text) > min(_LONGEST_LINE, page_tokens // 2):
            within = start - first, min(end, node.end) - first
            text, *window = _window(text, *within, page_tokens)
            first, last = first + window[0], first + window[1]
            place = f"{node.path}, characters {first}-{last}"
        shown_to[node.path] = last
        texts[place] = item(f"{place}: {text}")
    return blocks(list(texts.values()), listed(list(texts)), "hits")
