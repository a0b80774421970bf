"""Show a region page by page within a token limit, which includes the lines around it.

pages: after region and expansion. A page begins at the end of the previous one, so that pages omit
nothing and repeat nothing; the same region and size give the same pages.
"""

from __future__ import annotations

import bisect

import msgspec

from holdfast.condense.places import with_unit
from holdfast.errors import ExpandError
from holdfast.expand.expansion import Count, Expansion, PageFrame, shorten_where
from holdfast.expand.options import ExpandOptions
from holdfast.expand.region import Region

_CHARACTERS_PER_TOKEN = 3.5
_MOST_BLANKS = 64
"""Maximum white space at the end, such as a last line end, for which there is no next page."""
_SLACK = 8
"""Tokens kept free, because higher page numbers have more tokens."""


class NoPage(Exception):  # noqa: N818 - not an error: it becomes a text for the model
    """The requested part has fewer pages; caught in expander.py."""

    def __init__(self, reason: str, call: str) -> None:
        super().__init__(reason, call)
        self.reason = reason
        self.call = call
        """The call that opens the last page."""


def show(region: Region, options: ExpandOptions, frame: PageFrame, count: Count) -> Expansion:
    """Return the page that the options ask for.

    Raises:
        NoPage: there are fewer pages.
    """
    ends = _ends(region, options, frame, count)
    if len(ends) < options.page:
        pages = f"are only {len(ends):,} pages" if len(ends) != 1 else "is only 1 page"
        raise NoPage(f"there {pages}", frame.next_call(len(ends)))
    start = ends[options.page - 2] if options.page > 1 else 0
    return _expansion(region, (start, ends[options.page - 1]), options, frame, count)


def _expansion(
    region: Region, span: tuple[int, int], options: ExpandOptions, frame: PageFrame, count: Count
) -> Expansion:
    start, end = span
    content = region.text[start:end]
    remaining = region.left(end)
    where = region.where(start, end)
    place = shorten_where(where, count) + region.total
    text = frame.around(content, place, _said(region, remaining), options.page)
    return Expansion(
        text=text,
        content=content,
        where=where,
        complete=not remaining,
        remaining=remaining,
        unit=region.unit,
        next=options.to_dict() | {"page": options.page + 1} if remaining else None,
        tokens=count(text),
    )


def _said(region: Region, remaining: int) -> str:
    return _remaining(remaining, region.unit) if remaining else ""


def _remaining(number: int, unit: str) -> str:
    """Return how much is not shown yet: `1 line remains`, `20 lines remain`."""
    return f"{with_unit(number, unit)} {'remains' if number == 1 else 'remain'}"


# Ends of pages, so that reading page after page does not compute all earlier pages each time. The
# keys are hashes of the text and of the options, so that no content is kept.
_known: dict[tuple[object, ...], tuple[int, ...]] = {}
_MOST_KNOWN = 256


def _ends(
    region: Region, options: ExpandOptions, frame: PageFrame, count: Count
) -> tuple[int, ...]:
    """Return the end of each page, up to the requested or the last one."""
    request = hash((msgspec.structs.replace(options, page=1), frame))
    key = (hash(region.text), len(region.text), len(region.starts), request, count)
    ends = [*_known.get(key, ())]
    length, most = len(region.text), options.max_tokens
    while len(ends) < options.page and (not ends or ends[-1] < length):
        start = ends[-1] if ends else 0
        before = start - (ends[-2] if len(ends) > 1 else 0)
        density = max(0.2, before / most) if before else _CHARACTERS_PER_TOKEN
        ends.append(fit(region, start, most, frame, count, density=density))
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = tuple(ends)
    return tuple(ends)


def fit(
    region: Region,
    start: int,
    most: int,
    frame: PageFrame,
    count: Count,
    *,
    density: float = _CHARACTERS_PER_TOKEN,
) -> int:
    """Return the end of the page that begins at `start`."""
    length = len(region.text)
    limit = min(length, start + max(1, int(most * density)))
    fits, too_long = start, length + 1
    for _ in range(40):
        tokens = _tokens(region, start, limit, frame, count)
        if tokens <= most:
            fits = limit
            if limit == length or tokens > most * 0.9 or too_long - limit <= 1:
                break
            grown = start + int((limit - start) * min(4.0, most / max(1, tokens)) * 0.98)
            limit = min(length, too_long - 1, max(limit + 1, grown))
        else:
            too_long = limit
            if too_long - fits <= max(1, (fits - start) // 10):
                break
            shrunk = start + int((limit - start) * (most / tokens) * 0.95)
            limit = max(fits + 1, min(limit - 1, shrunk))
    end = region.cut(start, fits) if fits > start else start
    # A shorter text can have a token more, because words are split differently.
    while end > start and _tokens(region, start, end, frame, count) > most:
        end = region.cut(start, end - 1) if end - 1 > start else start
    if end <= start:
        raise ExpandError(
            "not one character fits", where="options.max_tokens", fix="Ask for more tokens."
        )
    return length if _ends_blank(region, start, end, most, frame, count) else end


def _ends_blank(
    region: Region, start: int, end: int, most: int, frame: PageFrame, count: Count
) -> bool:
    """Return whether only white space is left, which fits if the last line is omitted."""
    remainder = region.text[end : end + _MOST_BLANKS + 1]
    if not remainder or len(remainder) > _MOST_BLANKS or remainder.strip():
        return False
    where = shorten_where(region.where(start, len(region.text)), count) + region.total
    return count(frame.around(region.text[start:], where, "", 1)) <= most


def _tokens(region: Region, start: int, end: int, frame: PageFrame, count: Count) -> int:
    """Return the tokens of a page with the longest lines around it that a page can have.

    All pages are measured by the same lines, so that where one ends does not depend on its number.
    """
    place = shorten_where(region.where(start, end), count) + region.total
    remains = _remaining(max(2, len(region.starts), len(region.text)), region.unit)
    return count(frame.around(region.text[start:end], place, remains, 99_999)) + _SLACK


def surround(
    region: Region, start: int, end: int, options: ExpandOptions, frame: PageFrame, count: Count
) -> tuple[int, int]:
    """Return the widest piece around a place that fits, in complete units if possible."""
    most = options.max_tokens
    end = min(end, fit(region, start, most, frame, count))
    room = int(most * _CHARACTERS_PER_TOKEN)
    while room > end - start:
        spare = room - (end - start)
        first, last = _snapped(region, start, end, spare)
        if _tokens(region, first, last, frame, count) <= most:
            return first, last
        room = int(room * 0.8)
    return start, end


def _snapped(region: Region, start: int, end: int, spare: int) -> tuple[int, int]:
    first, last = max(0, start - spare // 2), min(len(region.text), end + spare // 2)
    units = region.starts
    after = bisect.bisect_left(units, first)
    if first > 0 and after < len(units) and units[after] <= start:
        first = units[after]
    before = bisect.bisect_right(units, last) - 1
    if last < len(region.text) and before >= 0 and units[before] >= end:
        last = units[before]
    return first, last
