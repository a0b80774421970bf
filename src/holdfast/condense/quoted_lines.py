"""The line of a text that a question quotes, with or without its numbers and ids.

quoted_lines: after question and spans, before cite. People quote a message as they remember it:
`failed to open: permission denied` of a line that has a time, a file and an id between the words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.condense.source import Source
from holdfast.condense.spans import LONG_LINE, lines_where, without_colours
from holdfast.search.query import quotations
from holdfast.search.words import fold

MARKUP = ("html", "xml")
"""Kinds whose passages are not lines of the content."""
_LEAST_WORDS = 3
"""Fewer words are a name, which occurs in many lines that the question does not mean."""
_MOST_LINES = 2_000
"""Lines with the longest word of a quote that are looked at."""
_BLANK = re.compile(r"_{3,}|\u2026|\.{3,}")
"""Placeholders for omitted words in a quote."""
_ASKS_FOR_LINE = re.compile(
    r"\b(?:which|what|quote the|find the) (?:line|row|sentence|message|entry)\b", re.IGNORECASE
)
_LONGEST_QUESTION = 300
"""Characters of a question that may ask for one line and no more: a longer text is a task."""


class QuotedLine(NamedTuple):
    """A line of a text, with its number counted from 1."""

    text: str
    number: int

    @property
    def where(self) -> str:
        """The place, as a citation names it."""
        return lines_where(self.number, self.number)


def quoted_line(source: Source, question: str) -> QuotedLine | None:
    """Return the one line that has all words of a quote in their order; None if several have."""
    texts = [_BLANK.sub(" ", fold(text)) for text in quotations(question)]
    quotes = [words for text in texts if len(words := text.split()) >= _LEAST_WORDS]
    if source.document is not None or not quotes:
        return None
    plain = without_colours(source)
    text, words = fold(plain.text), max(quotes, key=len)
    longest = max(words, key=len)
    spans: list[tuple[int, int]] = []
    end = 0
    for _ in range(_MOST_LINES):
        at = text.find(longest, end)
        if at < 0:
            break
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if end - start <= LONG_LINE and _in_order(words, text[start:end]):
            spans.append((start, end))
    else:
        return None
    if len(spans) != 1:
        return None
    [(start, end)] = spans
    return QuotedLine(plain.text[start:end].strip(), plain.line_at(start))


def asks_for_line(question: str) -> bool:
    """Return whether a question asks for a quoted line alone, or for what fills a blank in it."""
    if len(question) > _LONGEST_QUESTION:
        return False
    has_blank = any(_BLANK.search(text) for text in quotations(question))
    return has_blank or _ASKS_FOR_LINE.search(question) is not None


def _in_order(words: list[str], line: str) -> bool:
    at = 0
    for word in words:
        at = line.find(word, at) + len(word)
        if at < len(word):
            return False
    return True
