"""A part of a content that is shown page by page, with the places where it may be cut.

region: after document, before pages. A region consists of units: lines, rows, keys or matches. It
returns the best places to cut and the names of its pieces in source units; it knows no tokens.
"""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Callable, Sequence
from itertools import accumulate

from holdfast.condense.places import short_place
from holdfast.document import ContentView, Document, Node

Finer = Callable[[int, int], int]
"""(start, limit) → offset of a cut inside a unit that is too long, at most `limit`."""

Name = Callable[[int, int], str]
"""(first, last) → name of these units, counted from 0, in source units."""

_JOINERS = "\u200d\ufe0e\ufe0f"
_FULL_ENOUGH = 0.5
"""Minimum share of a page to fill before a large unit; otherwise the unit is cut."""


class Region:
    """A text that consists of units."""

    def __init__(  # noqa: PLR0913 - what a region is, by name
        self,
        text: str,
        *,
        unit: str,
        starts: Sequence[int],
        name: Name,
        total: str = "",
        base: int | None = None,
        finer: Finer | None = None,
    ) -> None:
        self.text = text
        self.unit = unit
        """Name of the units, in the plural."""
        self.starts = starts
        """Start offsets of the units; empty if the units are characters."""
        self.name = name
        self.total = total
        """Total number, as shown after the name."""
        self.base = base
        """Offset of the text in the content, if it is a piece of it."""
        self.whole = ""
        """Name of the complete region, if there is one."""
        self._finer = finer

    def cut(self, start: int, limit: int) -> int:
        """Return the best end of a piece that begins at `start`, at most `limit`."""
        if limit >= len(self.text):
            return len(self.text)
        at = bisect.bisect_right(self.starts, limit) - 1
        if at >= 0 and self.starts[at] > start:
            place = self.starts[at]
            if self._finer is None or place - start >= (limit - start) * _FULL_ENOUGH:
                return place
            return max(place, self._finer(start, limit))
        return self._finer(start, limit) if self._finer else between_words(self.text, start, limit)

    def units(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and last unit of a piece, counted from 0."""
        first = max(0, bisect.bisect_right(self.starts, start) - 1)
        last = max(first, bisect.bisect_left(self.starts, end) - 1)
        return first, last

    def where(self, start: int, end: int) -> str:
        """Return the name of a piece in source units."""
        if self.whole and (start, end) == (0, len(self.text)):
            return self.whole
        if not self.starts:
            return f"characters {(self.base or 0) + start}-{(self.base or 0) + end}"
        first, last = self.units(start, end)
        name = short_place(self.name(first, last))
        inside = start > self.starts[first] or (
            end < len(self.text) and (last + 1 >= len(self.starts) or end < self.starts[last + 1])
        )
        if inside and first == last and self.base is not None:
            return f"{name}, characters {self.base + start}-{self.base + end}"
        return name

    def left(self, end: int) -> int:
        """Return how many units are not completely shown if a piece ends here."""
        if end >= len(self.text):
            return 0
        if not self.starts:
            return len(self.text) - end
        at = bisect.bisect_left(self.starts, end)
        torn = at == len(self.starts) or self.starts[at] != end
        return min(len(self.starts), len(self.starts) - at + torn)


def characters(text: str, base: int = 0) -> Region:
    """Return a region whose units are characters."""
    return Region(
        text,
        unit="characters",
        starts=(),
        name=lambda _first, _last: "",
        total=f" of {len(text):,}" if not base else "",
        base=base,
    )


def lines(source: ContentView, first: int, last: int) -> Region:
    """Return lines `first` to `last`, counted from 1, both included."""
    begin = source.line_starts[first - 1]
    return Region(
        source.lines(first, last),
        unit="lines",
        starts=[start - begin for start in source.line_starts[first - 1 : last]],
        name=lambda one, other: f"lines {first + one}-{first + other}",
        total=f" of {source.line_count:,}",
        base=begin,
    )


def json_part(document: Document, node: Node, start: int, end: int, *, base: int | None) -> Region:
    """Return a span of a document; its units are the members of one value."""
    members = [
        member for member in document.members(node.start, node.end) if start <= member.start < end
    ]
    if not members:
        return Region(
            document.text[start:end],
            unit="characters",
            starts=(),
            name=lambda _first, _last: "",
            base=(base or 0) + start,
            finer=_finer(document, start),
        )
    siblings = document.members(node.start, node.end)
    if document.kind(node.start, node.end) == "array":
        unit = "rows"
        skipped = int(members[0].name)
        total = f" ({len(siblings):,} in all)"

        def name(first: int, last: int) -> str:
            return f"rows {skipped + first + 1}-{skipped + last + 1} of {node.path}"
    else:
        unit = "keys"
        numbered = {member.start: number for number, member in enumerate(siblings, 1)}
        before = numbered[members[0].start]
        total = f" ({len(siblings):,} in all)"

        def name(first: int, last: int) -> str:
            return f"keys {before + first}-{before + last} of {node.path}"

    return Region(
        document.text[start:end],
        unit=unit,
        starts=[member.start - start for member in members],
        name=name,
        total=total,
        base=None if base is None else base + start,
        finer=_finer(document, start),
    )


def _finer(document: Document, base: int) -> Finer:
    """Return a function that cuts JSON between members, of the outermost value if possible."""

    def finer(start: int, limit: int) -> int:
        first, last = start + base, limit + base
        node, best = document.root, first
        while True:
            inner = None
            members = document.members(node.start, node.end)
            at = bisect.bisect_right(members, last, key=lambda member: member.start) - 1
            if at >= 0:
                member = members[at]
                if member.start > first:
                    best = max(best, member.start)
                if best - first >= (last - first) * _FULL_ENOUGH:
                    return best - base
                if member.value < last < member.end and document.is_container(*member[2:]):
                    inner = Node("", member.value, member.end)
            if inner is None:
                break
            node = inner
        return best - base if best > first else between_words(document.text, first, last) - base

    return finer


def blocks(texts: Sequence[str], name: Name, unit: str) -> Region:
    """Return a region of pieces from several places."""
    starts = [0, *accumulate(len(text) + 1 for text in texts)][:-1]
    return Region("\n".join(texts), unit=unit, starts=starts, name=name)


def listed(places: Sequence[str]) -> Name:
    """Return a function that names units by their places."""

    def name(first: int, last: int) -> str:
        named = list(dict.fromkeys(map(short_place, places[first : last + 1])))
        if len(named) > 3:
            named[1:-1] = [f"{len(named) - 2} more places"]
        return "; ".join(named)

    return name


def between_words(text: str, start: int, limit: int) -> int:
    """Return where to cut a text without units: after a space, never inside a character."""
    for at in range(limit, max(start + 1, limit - 40), -1):
        if text[at - 1].isspace():
            return at
    at = limit
    while at > start + 1 and limit - at < 32 and _belongs_together(text, at):
        at -= 1
    return at


def _belongs_together(text: str, at: int) -> bool:
    return (
        unicodedata.combining(text[at]) > 0
        or text[at] in _JOINERS
        or text[at - 1] == "\u200d"
        or text[at - 1 : at + 1] == "\r\n"
    )
