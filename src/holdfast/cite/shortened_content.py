"""Shorten a content that is slightly too long by leaving out one stretch.

shortened_content: after composition, before content_citation. Runs of repeated lines are left out
first, because that loses nothing. Then the stretch is left out that matches the question least and
has the fewest errors, but never an end. The quoted text is exact and between fences, as in a page
of an expansion; a line between two fences names the omitted part and the call that opens it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from holdfast.cite.citation import Excerpt, count
from holdfast.cite.composition import CitationText, Handle
from holdfast.condense.condenser import Condenser, Passage
from holdfast.condense.glance import glance
from holdfast.condense.places import short_place
from holdfast.condense.severity import alert_lines
from holdfast.condense.source import Source
from holdfast.condense.spans import Span, cut, line_spans, where
from holdfast.expand.tool import call_of
from holdfast.quoting import CUT, fenced
from holdfast.search.passages import rank

LEAST_SHOWN = 0.8
"""Minimum share of a content's tokens. With a smaller share a citation is more useful."""
_MOST_SHOWN = 0.9
"""Maximum share. A larger one saves nothing, because the added lines take about 80 tokens."""
_PIECE = 240
"""Approximate characters of a piece; a gap begins and ends between pieces."""
_END_SHARE = 0.05
"""Share of the pieces at either end that is always shown."""
_REPEATS = 4
_LEAST_REPEATED = 200
"""Minimum number and characters of equal lines that are shown once. The line that replaces the
others has about 40 tokens."""
_ALERT = 0.5
"""Weight of an error in a piece; the piece that answers best has the weight 1."""
_GAP_TOKENS = 45
"""Tokens of the line that names the omitted part, and of the fences around it."""
_TRIES = 3


class _Gap(NamedTuple):
    """An omitted span."""

    start: int
    end: int
    repeats: bool = False
    """Whether the span only repeats the line before it."""


class _Piece(NamedTuple):
    start: int
    end: int
    tokens: int
    weight: float
    """How important the piece is."""


def shortened_content(
    handle: Handle, source: Source, condenser: Condenser, question: str, most: int
) -> CitationText | None:
    """Return a content in at most `most` tokens; None if they hold too little of it."""
    target = min(most, int(handle.tokens * _MOST_SHOWN))
    if target < handle.tokens * LEAST_SHOWN:
        return None
    condensed = condenser.condense(source)
    head = handle.head(condensed, source, glance(source).stored, "shortened")
    repeats = list(_repeats(source.text))
    pieces = _pieces(source, question, repeats)
    room = target - count(head) - _GAP_TOKENS * (1 + len(repeats))
    for _ in range(_TRIES):
        gaps = _with_stretch(repeats, pieces, sum(piece.tokens for piece in pieces) - room)
        spans = _between(source.text, gaps)
        parts = [Excerpt(source.text[a:b], where(source, a, b), 0.0) for a, b in spans]
        text = _text(handle, source, head, parts, gaps)
        tokens = count(text)
        if gaps and tokens <= target:
            title = " ".join(condensed.title.split())
            return CitationText(text, title, tokens, tuple(parts), condensed.unit, condensed.total)
        room -= max(1, tokens - target)
    return None


def _text(
    handle: Handle, source: Source, head: str, parts: Sequence[Excerpt], gaps: Sequence[_Gap]
) -> str:
    marks = [_mark(handle, source, gap) for gap in gaps]
    quoted = [fenced(part.text) for part in parts]
    between = [line for pair in zip(quoted, marks, strict=False) for line in pair]
    return "\n".join([head, *between, *quoted[len(marks) :]])


def _mark(handle: Handle, source: Source, gap: _Gap) -> str:
    place = short_place(where(source, gap.start, gap.end))
    if gap.repeats:
        return f"{CUT}{place}: the same as line {source.line_at(gap.start) - 1} …]"
    return f"{CUT}{place} left out: {call_of(handle.opener, handle.name, place)} …]"


def _between(text: str, gaps: Sequence[_Gap]) -> Iterator[Span]:
    """Return the quoted spans. The first and last are not empty, as no gap reaches the ends."""
    edges = [0, *(edge for gap in gaps for edge in (gap.start, gap.end)), len(text)]
    return zip(edges[::2], edges[1::2], strict=True)


def _repeats(text: str) -> Iterator[_Gap]:
    """Yield runs of equal lines, without the first line of each and the last line of the text."""
    lines = line_spans(text, 0, len(text))
    for _, run in groupby(lines, key=lambda span: text[span[0] : span[1]].rstrip()):
        spans = list(run)
        last = spans[-1] if spans[-1][1] + 1 < len(text) else spans[-2:][0]
        gap = _Gap(spans[0][1] + 1, last[1] + 1, repeats=True)
        if len(spans) >= _REPEATS and gap.end - gap.start >= _LEAST_REPEATED:
            yield gap


def _pieces(source: Source, question: str, repeats: Sequence[_Gap]) -> list[_Piece]:
    """Return the pieces that may be left out, with their weights."""
    text = source.text
    parts = _between(text, repeats)
    spans = [span for part in parts for span in cut(text, *part, _PIECE, by="line")]
    weights = [0.0] * len(spans)
    ranked = rank(question, [Passage(text[start:end], "") for start, end in spans])
    for answer in ranked:
        weights[answer.index] = answer.score / ranked[0].score
    starts = [start for start, _ in spans]
    for line in alert_lines(source):
        weights[bisect.bisect_right(starts, source.line_starts[line - 1]) - 1] += _ALERT
    return [
        _Piece(*span, count(text[slice(*span)]), weight)
        for span, weight in zip(spans, weights, strict=True)
    ]


def _with_stretch(repeats: Sequence[_Gap], pieces: Sequence[_Piece], tokens: int) -> list[_Gap]:
    """Return the gaps with the least important stretch of at least `tokens` tokens added."""
    if tokens <= 0:
        return list(repeats)
    edge = max(1, round(len(pieces) * _END_SHARE))
    sizes = [0, *accumulate(piece.tokens for piece in pieces)]
    losses = [0.0, *accumulate(piece.weight for piece in pieces)]
    stretches = []
    for first in range(edge, len(pieces) - edge):
        stop = bisect.bisect_left(sizes, sizes[first] + tokens)
        if stop <= len(pieces) - edge:
            loss = losses[stop] - losses[first]
            # Prefer the middle: agents return to the beginning and the end of a content.
            stretches.append((round(loss, 6), abs(first + stop - len(pieces)), first, stop))
    if not stretches:
        return []
    *_, first, stop = min(stretches)
    stretch = _Gap(pieces[first].start, pieces[stop - 1].end)
    return _merged(sorted([*repeats, stretch]))


def _merged(gaps: Sequence[_Gap]) -> list[_Gap]:
    """Return the gaps in order; adjacent ones are merged."""
    merged: list[_Gap] = []
    for gap in gaps:
        if merged and gap.start <= merged[-1].end:
            merged[-1] = _Gap(merged[-1].start, max(gap.end, merged[-1].end))
        else:
            merged.append(gap)
    return merged
