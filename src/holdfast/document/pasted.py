"""Locate a document pasted beside a question, by the shape of the text.

A document is the text between fences or tags, or otherwise the text between a short beginning and a
short end, which may be the question or an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from holdfast.document.steps import find_in_steps

LONGEST_QUESTION = 600
"""Maximum characters of a question or instruction; a longer paragraph is content."""
_FENCES = ("```", "~~~")
_SPACE = re.compile(r"\s*")
_MARKS = re.compile(r"[`~]{3}\w{0,40}|</?[\w-][^<>\n]{0,240}>")
_TAG = re.compile(r"<([A-Za-z][\w-]{0,40})(?: [^<>\n]{0,200})?>")
_LINE = re.compile(r"[^\n]+")
# In a text longer than twice this, only the paragraphs at both ends are examined, where a question
# is expected. One span for each of the 15 million lines of 31 MB took 20 seconds and gigabytes.
_END_CHARACTERS = 1_000_000


class TextSpan(NamedTuple):
    """A range of characters in a text."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """Return the number of characters."""
        return self.stop - self.start


_NOTHING = TextSpan(0, 0)


def document_in(text: str) -> TextSpan:
    """Return the span of a pasted document; empty if the text is not a document with a question."""
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
        return _NOTHING  # no short paragraph beside it, so all of it may be the question
    if not any(_asks(text, part) for part in (*parts[:first], *parts[last:])):
        first, last = _beside_question(text, parts, first, last)
    return TextSpan(parts[first].start, parts[last - 1].stop)


def _asks(text: str, part: TextSpan) -> bool:
    return part.size <= LONGEST_QUESTION and text[part.stop - 1] == "?"


def _beside_question(text: str, parts: list[TextSpan], first: int, last: int) -> tuple[int, int]:
    """Return the longer side if a question is in the middle and not at the ends."""
    middle = next((n for n in range(last - 1, first - 1, -1) if _asks(text, parts[n])), None)
    if middle is None or last - first == 1:
        return first, last
    sides = [side for side in ((first, middle), (middle + 1, last)) if side[0] < side[1]]
    return max(sides, key=lambda side: parts[side[1] - 1].stop - parts[side[0]].start)


def question_in(text: str) -> str:
    """Return a text without its pasted document."""
    document = document_in(text)
    if document.size <= LONGEST_QUESTION:
        return text
    words = (text[: document.start].strip(), text[document.stop :].strip())
    return "\n".join(filter(None, words))


def enclosed(text: str) -> TextSpan:
    """Return the text between fences or tags if it is most of the text and has words beside it."""
    span = max(_fenced(text), _tagged(text), key=lambda span: span.size)
    if 2 * span.size < len(text):
        return _NOTHING
    outside = text[: span.start] + text[span.stop :]
    return span if _words(outside) else _NOTHING


def paragraphs(text: str) -> list[TextSpan]:
    """Return the paragraphs of a text without surrounding space, or the lines of a single one."""
    lines = list(_lines(text))
    spans: list[TextSpan] = []
    for line in lines:
        if spans and text.count("\n", spans[-1].stop, line.start) == 1:
            spans[-1] = TextSpan(spans[-1].start, line.stop)
        else:
            spans.append(line)
    return spans if len(spans) > 1 else lines


def _lines(text: str) -> Iterator[TextSpan]:
    """Yield the non-empty lines without surrounding space."""
    for match in _LINE.finditer(text):
        words = match[0].lstrip()
        if words:
            start = match.end() - len(words)
            yield TextSpan(start, start + len(words.rstrip()))


def _end_paragraphs(text: str) -> list[TextSpan]:
    """Return the paragraphs at both ends of a long text, without those cut at the limit."""
    tail_start = len(text) - _END_CHARACTERS
    head, tail = paragraphs(text[:_END_CHARACTERS]), paragraphs(text[tail_start:])
    first, last = (
        head[:1],
        [TextSpan(part.start + tail_start, part.stop + tail_start) for part in tail[-1:]],
    )
    start = head[1].start if len(head) > 1 else first[0].start if first else 0
    stop = tail[-2].stop + tail_start if len(tail) > 1 else len(text)
    middle = [TextSpan(start, stop)]
    if len(head) < 2:
        first = []
    if len(tail) < 2:
        last = []
    return [*first, *middle, *last]


def _fenced(text: str) -> TextSpan:
    """Return the longest fenced block, because a question may be between two blocks."""
    return max(fenced_blocks(text), key=lambda span: span.size, default=_NOTHING)


def fenced_blocks(text: str) -> list[TextSpan]:
    """Return the spans between opening and closing fences, in order.

    The closing fence may directly follow the last line: aider writes it so for a file without a
    final line break.
    """
    blocks: list[TextSpan] = []
    openings = {fence: _next_opening(text, fence, 0) for fence in _FENCES}
    while any(at < len(text) for at in openings.values()):
        fence, opening = min(openings.items(), key=itemgetter(1))
        start = _next_line(text, opening)
        closed = _closing_line(text, fence, start)
        if closed is None:
            break
        blocks.append(TextSpan(start, closed.start + len(_before_fence(text, closed, fence))))
        for fence_name, at in openings.items():  # a distant fence is not searched again
            if at < closed.stop:
                openings[fence_name] = _next_opening(
                    text, fence_name, _next_line(text, closed.start)
                )
    return blocks


def _next_opening(text: str, fence: str, at: int) -> int:
    """Return the start of the next line with a fence, from the start of a line.

    `str.find` is used because splitting 7 million lines is one call of hundreds of milliseconds,
    during which no other thread runs.
    """
    if text.startswith(fence, at):
        return at
    line_end = find_in_steps(text, "\n" + fence, at)
    return len(text) if line_end < 0 else line_end + 1


def _closing_line(text: str, fence: str, at: int) -> TextSpan | None:
    """Return the next line that ends with a fence."""
    while (position := find_in_steps(text, fence, at)) >= 0:
        stop = _next_line(text, position)
        line = TextSpan(text.rfind("\n", 0, position) + 1, stop)
        if text[position:stop].rstrip().endswith(fence):
            return line
        at = stop
    return None


def _before_fence(text: str, line: TextSpan, fence: str) -> str:
    return text[line.start : line.stop].rstrip().rstrip(fence[0])


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def documents_in(text: str) -> list[TextSpan]:
    """Return the spans of the documents in a text: all fenced blocks if they are most of it.

    The text between the blocks may be the question or an instruction. Documents that together are
    as short as a question count as part of it.
    """
    blocks = fenced_blocks(text)
    if 2 * sum(block.size for block in blocks) < len(text):
        blocks = [document_in(text)]
    return blocks if sum(block.size for block in blocks) > LONGEST_QUESTION else []


def _tagged(text: str) -> TextSpan:
    """Return the span between the first tag that starts a line and its closing tag.

    Documents often come as several elements with one tag name; adjacent elements count as one.
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
        next_start = stop if gap is None else gap.end()
        if not text.startswith(opening, next_start):
            return TextSpan(start, stop)
        following = find_in_steps(text, closing, next_start)
        if following < 0:
            return TextSpan(start, stop)
        stop = following
    return _NOTHING


def _words(text: str) -> bool:
    """Return whether a text has words besides fences and tags."""
    return any(sign.isalnum() for sign in _MARKS.sub("", text))
