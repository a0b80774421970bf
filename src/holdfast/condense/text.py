"""Plain prose: its beginning, the most central sentences, and later parts.

This condenser handles any content that no other one recognises.

The patterns use `re`, because both need features that RE2 lacks: words of any script, and
lookahead. They are linear: one is anchored to the start of a line, on at most 120 characters before
its end; the other to a blank line, on 80 characters and the next blank line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.source import Source
from holdfast.condense.spans import (
    Span,
    counted,
    cut,
    first_sentence,
    paragraphs,
    passages_of,
    quote,
    until_next,
    where,
)

kind = "text"

HEAD = 500
"""Characters of the beginning that are quoted."""
CANDIDATES = 120
"""How many sentences are weighed, evenly spread over the text."""
SENTENCES = 6
"""How many of them are quoted."""
SECTIONS = 12
"""How many places of the text the outline names."""

_WARNING = re.compile(
    r"^[^\w\n]{0,8}(?:\w{1,20}[ .])?(?:error|warning|fatal|critical|danger|caution|security"
    r"|exception|traceback|\w{1,40}(?:Error|Exception|Warning))\b[^\n:]{0,40}:[^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:\A|\n[ \t\r]*+\n)((?=[^\n]{3,80}+(?:\n[ \t\r]*+\n|\n[=~-]{3}))[^\n]*[^\s.,;:!?])\r?\n"
)


def sniff(source: Source) -> float:
    """Anything is text, if it is nothing else."""
    return 0.01 if source.data else 0.005


def condense(source: Source) -> Condensed:
    """Quote the beginning, warnings, the most central sentences; outline by headings."""
    text = source.text
    spans = [span for span in paragraphs(text) if not text[span[0] : span[1]].isspace()]
    notes = [*warnings(source)]
    if spans:
        notes.append(_head(source, spans[0][0]))
        notes += _central(source, spans[1:])
        notes += _outline(source, spans)
    return Condensed(
        title=f"Text, {counted(source.line_count, 'line')}, {counted(len(text), 'character')}",
        unit="lines",
        total=source.line_count,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Paragraphs."""
    return passages_of(source, paragraphs(source.text))


def warnings(source: Source, most: int = 12) -> list[Note]:
    """Lines that begin as a warning or an error does, each once, and how many more there are."""
    by_text: dict[str, Span] = {}
    for match in _WARNING.finditer(source.text):
        by_text.setdefault(match[0].strip(), match.span())
    notes = [
        Note("alert", quote(line, 300), where(source, *span))
        for line, span in list(by_text.items())[:most]
    ]
    if unlisted := list(by_text.values())[most:]:
        text = f"{len(unlisted):,} more lines of warnings or errors"
        notes.append(Note("alert", text, where(source, unlisted[0][0], unlisted[-1][1])))
    return notes


def warning_in(text: str) -> str:
    """The first line of a text that begins as a warning or an error does; empty if none does."""
    match = _WARNING.search(text)
    return match[0].strip() if match else ""


def _head(source: Source, start: int) -> Note:
    start, end = next(cut(source.text, start, len(source.text), HEAD))
    text = source.text[start:end].rstrip()
    return Note("sample", text, where(source, start, start + len(text)))


def _central(source: Source, spans: Sequence[Span]) -> list[Note]:
    """The sentences that share the most words with the others."""
    text = source.text
    weighed = []
    chosen = spans[:: max(1, len(spans) // CANDIDATES)]
    sentences = [first_sentence(text[start:end].strip()) for start, end in chosen]
    bags = [
        {word for word in candidate.lower().split() if len(word) > 3} for candidate in sentences
    ]
    frequent = Counter(word for bag in bags for word in bag)
    for (start, end), sentence, bag in zip(chosen, sentences, bags, strict=True):
        # A word counts by how many others have it; the constant keeps short lines low.
        weight = sum(frequent[word] - 1 for word in bag) / (len(bag) + 4)
        weighed.append((-weight, start, end, sentence))
    best = sorted(weighed)[:SENTENCES]
    return [
        Note("sample", sentence, where(source, start, end)) for weight, start, end, sentence in best
    ]


def _outline(source: Source, spans: Sequence[Span]) -> list[Note]:
    """Return the headings, if there are some; else sentences at even distances."""
    text = source.text
    places = [match.span(1) for match in _HEADING.finditer(text)]
    if len(places) < 3:
        places = list(spans[1:])
    step = -(-len(places) // SECTIONS) or 1
    places = places[::step]
    spans = until_next([start for start, _ in places], len(text))
    return [
        Note("outline", quote(text[start:end], 80), where(source, *span))
        for (start, end), span in zip(places, spans, strict=True)
    ]
