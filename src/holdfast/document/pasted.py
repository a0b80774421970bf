"""The document that somebody pasted beside a question: where it stands in a text, by its shape.

pasted: knows text alone, and reads it once from end to end. A document is what is between fences or
tags; else what is left between a short beginning and a short end, which may be the question or say
what to do, and are never part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from holdfast.document.steps import find_in_steps

LONGEST_QUESTION = 600
"""Characters of a paragraph that may be a question or an instruction; a longer one is content."""
_FENCES = ("```", "~~~")
_SPACE = re.compile(r"\s*")
_MARKS = re.compile(r"[`~]{3}\w{0,40}|</?[\w-][^<>\n]{0,240}>")
_TAG = re.compile(r"<([A-Za-z][\w-]{0,40})(?: [^<>\n]{0,200})?>")
_LINE = re.compile(r"[^\n]+")
_END_CHARACTERS = 1_000_000
"""Of a text longer than twice this, paragraphs are looked for at both ends only: a question stands
there. A span for each of the 15 million lines of 31 MB took 20 seconds and gigabytes."""


class Span(NamedTuple):
    """A part of a text."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many characters it has."""
        return self.stop - self.start


_NOTHING = Span(0, 0)


def document_in(text: str) -> Span:
    """Where a pasted document stands in a text; empty if the text is no document and question."""
    inside = enclosed(text)
    if inside.size:
        return inside
    parts = paragraphs(text) if len(text) <= 2 * _END_CHARACTERS else _end_paragraphs(text)
    first, last = 0, len(parts)
    if last - first > 1 and parts[0].size <= LONGEST_QUESTION:
        first += 1
    if last - first > 1 and parts[-1].size <= LONGEST_QUESTION:
        last -= 1
    if last - first == len(parts):
        return _NOTHING  # there is nothing short beside it: all of it may be the question
    if not any(_asks(text, part) for part in (*parts[:first], *parts[last:])):
        first, last = _beside_question(text, parts, first, last)
    return Span(parts[first].start, parts[last - 1].stop)


def _asks(text: str, part: Span) -> bool:
    return part.size <= LONGEST_QUESTION and text[part.stop - 1] == "?"


def _beside_question(text: str, parts: list[Span], first: int, last: int) -> tuple[int, int]:
    """The longer of the two sides, where somebody asks in the middle and not at the ends."""
    middle = next((n for n in range(last - 1, first - 1, -1) if _asks(text, parts[n])), None)
    if middle is None or last - first == 1:
        return first, last
    sides = [side for side in ((first, middle), (middle + 1, last)) if side[0] < side[1]]
    return max(sides, key=lambda side: parts[side[1] - 1].stop - parts[side[0]].start)


def question_in(text: str) -> str:
    """A text without the document in it."""
    document = document_in(text)
    if document.size <= LONGEST_QUESTION:
        return text
    words = (text[: document.start].strip(), text[document.stop :].strip())
    return "\n".join(filter(None, words))


def enclosed(text: str) -> Span:
    """What stands between fences or tags, if it is most of the text and words stand beside it."""
    span = max(_fenced(text), _tagged(text), key=lambda span: span.size)
    if 2 * span.size < len(text):
        return _NOTHING
    beside = text[: span.start] + text[span.stop :]
    return span if _words(beside) else _NOTHING


def paragraphs(text: str) -> list[Span]:
    """The paragraphs of a text, without the space around them; its lines, if it is only one."""
    lines = list(_lines(text))
    spans: list[Span] = []
    for line in lines:
        if spans and text.count("\n", spans[-1].stop, line.start) == 1:
            spans[-1] = Span(spans[-1].start, line.stop)
        else:
            spans.append(line)
    return spans if len(spans) > 1 else lines


def _lines(text: str) -> Iterator[Span]:
    """Yield the lines without the space around them; those of nothing else are passed over."""
    for match in _LINE.finditer(text):
        words = match[0].lstrip()
        if words:
            start = match.end() - len(words)
            yield Span(start, start + len(words.rstrip()))


def _end_paragraphs(text: str) -> list[Span]:
    """The paragraphs at both ends of a long text; what was cut through is left out."""
    behind = len(text) - _END_CHARACTERS
    head, tail = paragraphs(text[:_END_CHARACTERS]), paragraphs(text[behind:])
    first, last = head[:1], [Span(part.start + behind, part.stop + behind) for part in tail[-1:]]
    start = head[1].start if len(head) > 1 else first[0].start if first else 0
    stop = tail[-2].stop + behind if len(tail) > 1 else len(text)
    middle = [Span(start, stop)]
    if len(head) < 2:
        first = []
    if len(tail) < 2:
        last = []
    return [*first, *middle, *last]


def _fenced(text: str) -> Span:
    """The longest of the blocks between fences: between two of them somebody may ask."""
    return max(fenced_blocks(text), key=lambda span: span.size, default=_NOTHING)


def fenced_blocks(text: str) -> list[Span]:
    """Return the spans between opening and closing fences, in order.

    The closing fence may follow the last line directly: aider writes it so for a file without a
    line break at its end.
    """
    blocks: list[Span] = []
    openings = {fence: _next_opening(text, fence, 0) for fence in _FENCES}
    while any(at < len(text) for at in openings.values()):
        fence, opening = min(openings.items(), key=itemgetter(1))
        start = _next_line(text, opening)
        closed = _closing_line(text, fence, start)
        if closed is None:
            break
        blocks.append(Span(start, closed.start + len(_before_fence(text, closed, fence))))
        for other, at in openings.items():  # a fence that is far away is not looked for again
            if at < closed.stop:
                openings[other] = _next_opening(text, other, _next_line(text, closed.start))
    return blocks


def _next_opening(text: str, fence: str, at: int) -> int:
    """Return where the next line with a fence begins, from the beginning of a line on.

    Found by searching, not by splitting into lines: to split 7 million lines is one call of
    hundreds of milliseconds, in which no other thread runs.
    """
    if text.startswith(fence, at):
        return at
    found = find_in_steps(text, "\n" + fence, at)
    return len(text) if found < 0 else found + 1


def _closing_line(text: str, fence: str, at: int) -> Span | None:
    """Return the next line that ends with a fence."""
    while (found := find_in_steps(text, fence, at)) >= 0:
        stop = _next_line(text, found)
        line = Span(text.rfind("\n", 0, found) + 1, stop)
        if text[found:stop].rstrip().endswith(fence):
            return line
        at = stop
    return None


def _before_fence(text: str, line: Span, fence: str) -> str:
    return text[line.start : line.stop].rstrip().rstrip(fence[0])


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def documents_in(text: str) -> list[Span]:
    """Return the spans of documents in a text: all fenced blocks if these are most of it.

    The text between the blocks may be the question or an instruction. Documents that are together
    as short as a question are taken as part of it.
    """
    blocks = fenced_blocks(text)
    if 2 * sum(block.size for block in blocks) < len(text):
        blocks = [document_in(text)]
    return blocks if sum(block.size for block in blocks) > LONGEST_QUESTION else []


def _tagged(text: str) -> Span:
    """What stands between the first tag that begins a line and its end, or that of its kind's last.

    Documents often come as several elements of one kind; they are one if nothing is between them.
    """
    # A pattern that looks through 31 MB holds the interpreter for 0.2 s.
    at = 0
    while (tag := _TAG.match(text, at)) is None:
        at = find_in_steps(text, "\n<", at) + 1
        if not at:
            return _NOTHING
    start = tag.end()
    opening, closing = f"<{tag[1]}", f"</{tag[1]}>"
    stop = find_in_steps(text, closing, start)
    while stop >= 0:
        gap = _SPACE.match(text, stop + len(closing))
        behind = stop if gap is None else gap.end()
        if not text.startswith(opening, behind):
            return Span(start, stop)
        following = find_in_steps(text, closing, behind)
        if following < 0:
            return Span(start, stop)
        stop = following
    return _NOTHING


def _words(text: str) -> bool:
    """Whether somebody says something, beside the fences and tags."""
    return any(sign.isalnum() for sign in _MARKS.sub("", text))
