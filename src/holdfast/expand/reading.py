"""Open a part of a stored content, exactly and under a cap.

reading: after every way of opening. The one function that surfaces and the engine call; it is
given the bytes, so it knows no store.
"""

from __future__ import annotations

import msgspec

from holdfast.errors import ExpandError
from holdfast.expand.around import place
from holdfast.expand.asking import by_query
from holdfast.expand.expansion import (
    LONGEST_REF,
    Count,
    Expansion,
    PageFrame,
    frame,
    miss,
    shorten_where,
)
from holdfast.expand.opened import Opened
from holdfast.expand.options import ExpandOptions
from holdfast.expand.pages import show, surround
from holdfast.expand.pattern import by_pattern
from holdfast.expand.region import Region, lines
from holdfast.expand.rows import Nothing, by_structure
from holdfast.expand.tool import NAME
from holdfast.expand.ways import is_example

_NOT_UTF8 = "bytes that are no UTF-8 show as U+FFFD"


def expand(  # noqa: PLR0913 what to open, and how to say it, by name
    ref_id: str,
    data: bytes,
    kind: str,
    options: ExpandOptions,
    *,
    count: Count,
    note: str = "",
    opener: str = NAME,
) -> Expansion:
    """The part of a content that the options ask for, at most `options.max_tokens`.

    What remains is offered under `opener`, the name of the tool in this conversation. Where there
    is no such part, the expansion says why, and what to do next.
    """
    opened = Opened(data, kind)
    if not opened.source.is_exact:
        note = f"{note} · {_NOT_UTF8}" if note else _NOT_UTF8
    if not opened.text:
        return miss("this content is empty", "", count=count, ref_id=ref_id)
    attempts = _in_order(opened, options)
    failure: ExpandError | Nothing | None = None
    for attempt in attempts:
        used = _used(attempt, attempts, failure)
        around = frame(
            ref_id,
            " · ".join(filter(None, (used, note))),
            plain=options == ExpandOptions(page=options.page),
            opener=opener,
            count=count,
        )
        try:
            if attempt.around:
                return _surroundings(opened, attempt, around, count)
            return show(_region(opened, attempt), attempt, around, count)
        except (ExpandError, Nothing) as error:
            failure = failure or error
    if isinstance(failure, ExpandError):
        raise failure
    assert failure is not None  # noqa: S101 - there is at least one attempt
    return miss(
        failure.reason,
        failure.step,
        count=count,
        ref_id=ref_id[:LONGEST_REF],
        there=failure.there,
        most=options.max_tokens,
    )


def _in_order(opened: Opened, options: ExpandOptions) -> list[ExpandOptions]:
    """Return what to try, copies of the citation's own examples last.

    Models that guess copy every example into one call, beside the words that they mean.
    """
    most = options.max_tokens
    attempts = [msgspec.structs.replace(options, otherwise=())]
    attempts += [msgspec.structs.replace(each, max_tokens=most) for each in options.otherwise]
    if len(attempts) == 1:
        return attempts
    return sorted(attempts, key=lambda attempt: is_example(attempt, opened.source))


def _used(
    attempt: ExpandOptions, attempts: list[ExpandOptions], failure: ExpandError | Nothing | None
) -> str:
    """Return which way of several was taken, and why; nothing if there was only one."""
    if len({_way(each) for each in attempts}) == 1:
        return ""
    why = f", because {_way(attempts[0])} finds nothing" if failure is not None else ""
    return f"by {_way(attempt)}{why}"


def _way(options: ExpandOptions) -> str:
    names = ("path", "fields", "slice", "lines", "pattern", "around", "query")
    return next((name for name in names if getattr(options, name)), "page")


def _region(opened: Opened, options: ExpandOptions) -> Region:
    if options.lines:
        return _lines(opened, *options.lines)
    if options.pattern:
        return by_pattern(opened, options.pattern, options.max_tokens)
    if options.query:
        return by_query(opened, options)
    if options.path or options.fields or options.slice:
        return by_structure(opened, options)
    return opened.whole()


def _lines(opened: Opened, first: int, last: int | None) -> Region:
    total = opened.source.line_count
    if first > total:
        raise Nothing(f"there are only {total:,} lines", f"Ask for lines up to {total}.")
    first = max(1, total + 1 + first) if first < 0 else first
    if opened.is_one_line:
        return opened.whole()
    return lines(opened.source, first, min(last or total, total))


def _surroundings(
    opened: Opened, options: ExpandOptions, around: PageFrame, count: Count
) -> Expansion:
    region, start, end = place(opened, options.around)
    first, last = surround(region, start, end, options, around, count)
    where = region.where(first, last)
    content = region.text[first:last]
    shown = shorten_where(where, count) + region.total
    text = around.around(content, shown, "", 1)
    return Expansion(text=text, content=content, where=where, unit=region.unit, tokens=count(text))
