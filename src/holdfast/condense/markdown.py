"""Markdown: the outline of its sections, its beginning, its links and code blocks.

A section extends from its heading to the next one of any level. Headings inside code blocks do not
count.

The patterns use `re`, because a text may have a match in every line and RE2 takes ten times as long
for each. Markdown is recognised in the first 8,000 bytes. The other patterns are linear: each is
anchored to the start of a line or to a bracket, on a few hundred characters; longer repeats are
possessive or at the end.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from itertools import islice

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.source import Source, once
from holdfast.condense.spans import (
    MOST_PASSAGES,
    Span,
    counted,
    cut,
    first_sentence,
    head,
    paragraphs,
    passages_of,
    quote,
    where,
)
from holdfast.condense.text import warnings

kind = "markdown"

SNIFFED = 8000
"""Bytes of the beginning that are looked at."""
HEAD = 500
"""Characters of the beginning that are quoted."""
SECTIONS = 40
"""Maximum number of sections listed one by one."""
LINKS = 12
"""Maximum number of links listed."""
_NAME_CHARS = 400
"""Of a heading, of which 100 are shown at most."""

_HEADING = re.compile(
    r"^(?: {0,3}(#{1,6})[ \t]++([^\n]*)|([^\s#>|\-*+`~=][^\n]{0,200})\r?\n(=++|-++)[ \t\r]*+$)",
    re.MULTILINE,
)
_FENCE = re.compile(r"^ {0,3}(```++|~~~++)([^\n`]*+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]\n]{0,200})\]\(<?([^\s)>]{1,2000})")
_CALLOUT = re.compile(
    r"^> {0,3}\[!(?:WARNING|CAUTION|IMPORTANT)\][^\n]*(?:\n>[^\n]*){0,6}", re.MULTILINE
)
_SIGNS = (
    (re.compile(r"^#{1,6} \S", re.MULTILINE), 0.25, 4),
    (re.compile(r"^ {0,3}```", re.MULTILINE), 0.2, 2),
    (re.compile(r"\]\((?:https?:|/|#|\.)"), 0.2, 3),
    (re.compile(r"^ {0,6}(?:[-*+]|\d{1,3}\.) +(?:\*\*|`|\[)", re.MULTILINE), 0.15, 3),
    (re.compile(r"^\|[^\n]*\|[ \t]*\n\|[ :|-]+\|", re.MULTILINE), 0.3, 1),
    (re.compile(r"\*\*[^*\n]{1,80}\*\*"), 0.1, 4),
    (re.compile(r"^(?:===+|---+)[ \t]*$", re.MULTILINE), 0.1, 2),
)


class Section(msgspec.Struct, frozen=True):
    """A heading and the text under it."""

    level: int
    """0 for the text before the first heading."""
    name: str
    span: Span


def sniff(source: Source) -> float:
    """By how many signs of Markdown there are, and how many different ones."""
    first = head(source, SNIFFED)
    if first.lstrip()[:1] in ("{", "<") or first.startswith(("#!", "diff ")):
        return 0.0
    score = 0.0
    for pattern, worth, enough in _SIGNS:
        count = sum(1 for _ in pattern.finditer(first))
        score += worth * min(count / enough, 1)
    return min(0.45 + 0.5 * score, 0.85) if score >= 0.2 else 0.0


def condense(source: Source) -> Condensed:
    """Warnings, the beginning, sections with their places, links and blocks of code."""
    text = source.text
    parts = sections(source)
    named = [section for section in parts if section.level]
    notes = [
        Note("alert", match[0], where(source, *match.span()))
        for match in islice(_CALLOUT.finditer(text), 6)
    ]
    notes += warnings(source, 6)
    notes += _samples(source, parts)
    notes += [_entry(source, section) for section in named[:SECTIONS]]
    if unlisted := named[SECTIONS:]:
        place = where(source, unlisted[0].span[0], unlisted[-1].span[1])
        notes.append(Note("outline", f"{len(unlisted):,} more sections", place))
    notes += [*_links(text), *_code(text)]
    name = f' "{quote(named[0].name, 100)}"' if named else ""
    return Condensed(
        title=f"Markdown{name}, {counted(len(named), 'section')},"
        f" {counted(source.line_count, 'line')}",
        unit="lines",
        total=source.line_count,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Paragraphs, each under the heading of its section."""
    parts: list[Passage] = []
    for section in sections(source):
        for n, passage in enumerate(passages_of(source, paragraphs(source.text, *section.span))):
            headed = (
                f"{quote(section.name, 100)}\n{passage.text}"
                if n and section.name
                else passage.text
            )
            parts.append(Passage(headed, passage.where))
    return parts


@once
def sections(source: Source) -> list[Section]:
    """Return all sections; the text before the first heading is a section without a name.

    Above the maximum, the last section extends to the end of the text.
    """
    text = source.text
    code = _code_spans(text)
    outline: list[Section] = []
    level, name, start = 0, "", 0
    for heading in _HEADING.finditer(text):
        at = heading.start()
        if code and _inside(code, at):
            continue
        if len(outline) == MOST_PASSAGES:
            break
        if at:
            outline.append(Section(level, name, (start, at)))
        level, start = _level(heading), at
        # A heading may be a megabyte long.
        name = (heading[2] or heading[3] or "")[:_NAME_CHARS].strip(" #\t\r")
    if start < len(text):
        outline.append(Section(level, name, (start, len(text))))
    return outline


def _level(found: re.Match[str]) -> int:
    return len(found[1]) if found[1] else 1 if found[4][0] == "=" else 2


def _code_spans(text: str) -> list[Span]:
    """Return the spans of code blocks; an unclosed one extends to the end."""
    spans: list[Span] = []
    start, sign, length = -1, "", 0
    for fence in _FENCE.finditer(text):
        first, last = fence.span(1)
        if start < 0:
            start, sign, length = fence.start(), text[first], last - first
        # One of many thousand signs is not copied for every other fence: only its length counts.
        elif text[first] == sign and last - first >= length and not fence[2].strip():
            spans.append((start, fence.end()))
            start = -1
    return [*spans, (start, len(text))] if start >= 0 else spans


def _inside(spans: Sequence[Span], offset: int) -> bool:
    at = bisect.bisect_right(spans, (offset, len(spans) and spans[-1][1] + 1)) - 1
    return at >= 0 and spans[at][0] <= offset < spans[at][1]


def _entry(source: Source, one: Section) -> Note:
    name = quote(one.name, 80)
    place = where(source, *one.span)
    return Note("outline", f"{'#' * one.level} {name}", f"section: {name} ({place})")


def _samples(source: Source, parts: Sequence[Section]) -> list[Note]:
    """The beginning, and how the first sections begin."""
    text = source.text
    start = len(text) - len(text.lstrip())
    if start == len(text):
        return []
    start, end = next(cut(text, start, len(text), HEAD))
    notes = [Note("sample", text[start:end].rstrip(), where(source, start, end))]
    for part in parts[1:9]:
        body = text[part.span[0] : part.span[1]].partition("\n")[2].strip()
        if body and part.span[0] >= end:
            notes.append(
                Note(
                    "sample",
                    f"{quote(part.name, 80)}: {first_sentence(body)}",
                    where(source, *part.span),
                )
            )
    return notes


def _links(text: str) -> list[Note]:
    links = dict.fromkeys(match.groups() for match in _LINK.finditer(text))
    if not links:
        return []
    first = islice(links, LINKS)
    names = ", ".join(f"[{quote(label, 60)}]({href})" for label, href in first)
    more = f", {len(links) - LINKS:,} more" if len(links) > LINKS else ""
    return [Note("outline", f"links: {names}{more}")]


def _code(text: str) -> list[Note]:
    blocks = len(_code_spans(text))
    return [Note("outline", counted(blocks, "block") + " of code")] if blocks else []
