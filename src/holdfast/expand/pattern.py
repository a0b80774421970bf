"""Find the matches of a regular expression, with line numbers or paths and context.

pattern: after content. The model writes the pattern and the content may be hostile. The time of RE2
is proportional to the text, the pattern and the number of empty matches. So the text is searched
window by window up to a limit of hits, empty matches and CPU time, and the answer reports how much
was searched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.document import Document
from holdfast.errors import ExpandError
from holdfast.expand.content import OpenContent
from holdfast.expand.region import Name, Region, blocks, listed
from holdfast.expand.rows import NoSuchPart
from holdfast.quoting import indented, item

MOST_CHARACTERS = 1000
"""Maximum characters of a pattern."""
MOST_BYTES = 32 * 1024 * 1024
"""Maximum bytes of the searched text."""
MOST_HITS = 500
MOST_EMPTY = 20_000
"""Maximum empty matches, as of `\\b` and `x*`: each costs a step in Python, and those in 10 MB took
28 seconds."""
MOST_PROGRAM = 10_000
"""Maximum program size; `(?:\\pL|\\pN){200}` compiles to 268,000 and searches 0.1 MB/s."""
MOST_SECONDS = 2.0
"""CPU seconds of one search. `a[ab]{900}c` would take four minutes for 32 MB."""
_WINDOW_STEPS = 1 << 27
"""Bytes of a window times program size: at most a second between two checks of the clock."""
_LEAST_WINDOW = 1 << 14
_MOST_WINDOW = 1 << 20
_OVERLAP = 8
"""A match that exceeds its window is cut there, or found in the next window if it begins in the
last eighth."""
_CONTEXT_LINES = 1
_LONGEST_LINE = 400
_BESIDE = 120
"""Characters of a long line on each side of a match."""
_SMALL_PAGE = 480
"""Tokens of a page below which less context is shown, so that the match fits."""
_MEMORY = 16 * 1024 * 1024

Hit = tuple[int, int]
"""Start and end of a match in the text."""
Place = int | str
"""The number of a line, or the name of a part of a long line."""


class _Search(NamedTuple):
    """The result of a search, and how much was searched."""

    hits: list[Hit]
    characters: int
    """Number of searched characters; all unless a limit was reached."""
    ignored_case: bool = False


def by_pattern(opened: OpenContent, pattern: str, page_tokens: int) -> Region:
    """Return the matches in order; the first one fits on a page of `page_tokens`."""
    hits, characters, ignored_case = _hits(opened, pattern)
    part = ""
    if characters < len(opened.text):
        part = f" of the first {characters:,} of {len(opened.text):,} characters"
    if not hits:
        raise NoSuchPart(f"nothing{part} matches the pattern, with or without regard to case")
    document = opened.source.document
    if document is not None and opened.base(document) == 0 and _has_long_lines(opened, hits):
        region = _in_json(document, hits, page_tokens)
    else:
        region = _in_lines(opened, hits, page_tokens)
    number = f"first {MOST_HITS}" if len(hits) >= MOST_HITS else f"{len(hits)} in all{part}"
    region.total = f" ({number}, ignoring case)" if ignored_case else f" ({number})"
    return region


def _hits(opened: OpenContent, pattern: str) -> _Search:
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


def _search(text: str, pattern: str, *, ignore_case: bool) -> _Search:
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
        return _Search(spans, reached, ignore_case)
    characters = len(data[:reached].decode("utf-8", "ignore"))
    return _Search(_in_characters(data, spans), characters, ignore_case)


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
    """Return byte offsets as offsets in the text."""
    converted, done, at = [], 0, 0
    for start, end in spans:
        first = at + len(data[done:start].decode("utf-8", "ignore"))
        last = first + len(data[start:end].decode("utf-8", "ignore"))
        converted.append((first, last))
        done, at = end, last
    return converted


def _has_long_lines(opened: OpenContent, hits: list[Hit]) -> bool:
    starts = [*opened.source.line_starts, len(opened.text)]
    numbers = {opened.source.line_at(start) for start, _ in hits[:20]}
    return any(starts[number] - starts[number - 1] > _LONGEST_LINE for number in numbers)


def _in_lines(opened: OpenContent, hits: list[Hit], page_tokens: int) -> Region:
    """Return every line with a match and its neighbours; long lines are shortened."""
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


def _line(opened: OpenContent, number: int, hit: Hit | None, page_tokens: int) -> tuple[str, Place]:
    """Return a numbered line and its name; `40:` has a match, `41-` is beside one."""
    text = opened.source.lines(number, number).rstrip("\r\n")
    begin = opened.source.line_starts[number - 1]
    place: Place = number
    if len(text) > min(_LONGEST_LINE, page_tokens // (2 if hit else 4)):
        start, end = (hit[0] - begin, hit[1] - begin) if hit else (0, 0)
        text, first, last = _window(text, start, min(end, len(text)), page_tokens)
        place = f"characters {begin + first}-{begin + last}"
    # A line may contain other line ends, after which text would look like the next line.
    return f"{number}{':' if hit else '-'} {indented(text)}", place


def _runs(places: Sequence[Place]) -> Name:
    """Return a function that names lines by ranges, and parts of a line by characters."""

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
    """Return the text around a match, and its start and end."""
    beside = _BESIDE * min(page_tokens, _SMALL_PAGE) // _SMALL_PAGE
    first, last = max(0, start - beside), min(len(text), min(end, start + 200) + beside)
    marked = ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
    return marked, first, last


def _in_json(document: Document, hits: list[Hit], page_tokens: int) -> Region:
    """Return the values with a match; long values are shortened to the text around it."""
    texts: dict[str, str] = {}
    shown_to: dict[str, int] = {}
    for start, end in hits:
        node = document.node_at(start)
        if shown_to.get(node.path, -1) >= min(end, node.end):
            continue  # the shown part of the value contains it already
        # A match in a key is before the value; both are shown.
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
