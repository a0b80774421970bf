"""Logs: every error and warning with its place, then the kinds of lines with their numbers.

Lines that differ only in numbers form a group, which is shown by its first line, quoted, with its
count and places. Expensive work is done once per group, not per line.

The patterns use `re`: they run on the first 400 characters of a line, or the first 6,000 of a
content, and their repeats are bounded or possessive.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import chain, pairwise

import msgspec
from msgspec.structs import replace

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.severity import Rank, alert_lines, level, numbers_of, places, ranges, rank
from holdfast.condense.source import Source
from holdfast.condense.spans import (
    LONGEST,
    counted,
    cut,
    head,
    lines_where,
    passages_of,
    quote,
    where,
    without_colours,
)

kind = "log"

ALERTS = 40
"""Maximum number of quoted groups of errors and warnings; the list of places has the others."""
TEMPLATES = 12
"""Maximum number of other groups shown."""
SNIFFED = 6000
"""Bytes of the beginning that are looked at."""

_STAMP = re.compile(
    r"(?:\d{4}|\d\d)[-/.]\d\d[-/.]\d\d(?:\d\d)?[T \-_:]{1,2}\d{1,2}[:.]\d\d[:.]\d\d"
    r"(?:[.,:]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[ ,]{1,2})?"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" +\d{1,2} (?:\d{4} )?\d\d:\d\d:\d\d(?:[.,]\d+)?(?: \d{4})?"
    r"|\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?"
    r"|\d{8}[-T ]\d{1,2}:?\d\d:?\d\d(?:[.,:]\d+)?"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
_CLOCK = re.compile(r"\d[:.]\d\d|\d{8}[-T ]\d")  # in every stamp; quickly found not to be there
_LEVEL_FIRST = re.compile(
    r"\s{0,4}[\[<(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b"
    r"|npm (?:ERR!|WARN|info)|[^\s:]{1,200}:\d{1,6}(?::\d{1,6})?: (?:fatal )?(?:error|warning)\b"
    r"|\{\"[^\n]{0,300}\"(?:level|severity|lvl)\""
    r"|\[ {0,8}\d{1,9}\.\d{3,6}\] "
    # Behind a number, only in capitals: prose has such words too.
    r"|(?-i:\S{0,30}\d\S{0,9} {1,3}[\[<(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\b)",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    r"\b(?:\w{0,40}\d|[A-Z][a-z]{2} {1,2}\d)[\w.:,+\-]*+"
    r"|\b[0-9a-f]{8,}+\b|\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'"
)
_CONTINUES = (" ", "\t", "Caused by", "Traceback", "}")


class Group(msgspec.Struct, frozen=True):
    """Lines that are alike but for their variable parts."""

    first: str
    """The first line of the group, verbatim."""
    level: str
    rank: Rank
    lines: array[int]
    """Their numbers, counted from 1, in order."""


def sniff(source: Source) -> float:
    """By how many of the first lines begin with a time or a level."""
    first = head(source, SNIFFED).split("\n")
    lines = [line for line in (first[:-1] or first)[:40] if line.strip()]
    if len(lines) < 2:
        return 0.0
    marked = [bool(_CLOCK.search(line, 0, 90) and _STAMP.search(line, 0, 90)) for line in lines]
    marked = [
        stamp or bool(_LEVEL_FIRST.match(line)) for stamp, line in zip(marked, lines, strict=True)
    ]
    share = sum(marked) / len(lines)
    if share < 0.3 or sum(marked) < 2:
        return 0.0
    # A table has a head without a time, and the same separators in every line.
    for separator in ",\t;":
        if not marked[0] and len({line.count(separator) for line in lines} - {0}) == 1:
            return 0.2
    return 0.5 + 0.35 * share


def condense(source: Source) -> Condensed:
    """Errors and warnings first, then levels, time span and the most frequent kinds of lines."""
    source = without_colours(source)
    groups = group_lines(source)
    alerts = sorted((g for g in groups if g.rank), key=lambda g: (-g.rank, g.lines[0]))
    calm = sorted((g for g in groups if not g.rank), key=lambda g: (-len(g.lines), g.lines[0]))
    total = source.line_count
    notes = [*_alerts(source, alerts), *_levels(groups), *_span(source)]
    notes += [Note("outline", _described(g), _first_place(source, g)) for g in calm[:TEMPLATES]]
    if unlisted := calm[TEMPLATES:]:
        count = sum(len(group.lines) for group in unlisted)
        notes.append(
            Note("outline", f"{counted(count, 'other line')} of {counted(len(unlisted), 'kind')}")
        )
    notes += _ends(source)
    return Condensed(
        title=f"Log, {counted(total, 'line')} of {counted(len(groups), 'kind')}",
        unit="lines",
        total=total,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Each line, with the lines that continue it."""
    source = without_colours(source)
    return passages_of(source, _entries(source))


def group_lines(source: Source) -> list[Group]:
    """All lines in groups, in the order of their first lines."""
    alerting = bytearray(source.line_count + 2)
    for number in alert_lines(source):
        alerting[number] = 1
    alike: defaultdict[tuple[bytes, int], array[int]] = defaultdict(lambda: array("I"))
    bare = BytesIO(source.data.translate(None, b"0123456789"))
    for number, line in enumerate(bare, 1):
        alike[line.rstrip(b"\n"), alerting[number]].append(number)
    merged: dict[tuple[str, str, int], Group] = {}
    for (_, mentioned), numbers in alike.items():
        first = source.lines(numbers[0], numbers[0]).strip()
        if not first:
            continue
        named = level(first)
        # The part that a template omits may be the error itself, so the template is not the whole
        # key.
        key = template(first[:400]), named, mentioned
        if key in merged:
            merged[key].lines.extend(numbers)
        else:
            grave = rank(first[:400], named) if mentioned or named else 0
            # A word far back in a long line is a mention at least.
            merged[key] = Group(first, named, max(grave, 1) if mentioned else grave, numbers)
    return [replace(group, lines=array("I", sorted(group.lines))) for group in merged.values()]


def template(line: str) -> str:
    """A line with `<*>` for times, numbers, ids and quoted values."""
    return _VARIABLE.sub("<*>", line)


def _entries(source: Source) -> Iterator[tuple[int, int]]:
    text = source.text
    begin = 0
    for start, end in pairwise(chain(source.line_starts, (len(text),))):
        if end - begin > LONGEST or not text.startswith(_CONTINUES, start):
            if begin < start:
                yield from cut(text, begin, start)
            begin = start
    yield from cut(text, begin, len(text))


def _alerts(source: Source, groups: Sequence[Group]) -> list[Note]:
    if not groups:
        return []
    notes = []
    # The less grave, the fewer ranges, so that there is room to quote some.
    for grave, name, most in ((3, "errors", 8), (2, "warnings", 5), (1, "mentions of errors", 3)):
        graves = bytearray(source.line_count + 1)
        for group in groups:
            if group.rank == grave:
                for number in group.lines:
                    graves[number] = 1
        if lines := numbers_of(graves):
            notes.append(Note("alert", f"{name}: {places(lines, most)}"))
    notes += [Note("alert", _described(g), _first_place(source, g)) for g in groups[:ALERTS]]
    return notes


def _described(group: Group) -> str:
    """The first line of a group, quoted, and how many others there are."""
    if len(group.lines) == 1:
        return quote(group.first, 300)
    return f"{quote(group.first, 300)} [{len(group.lines):,} alike: lines {ranges(group.lines, 4)}]"


def _first_place(source: Source, group: Group) -> str:
    start = source.line_starts[group.lines[0] - 1]
    return where(source, start, start + len(group.first))


def _levels(groups: Sequence[Group]) -> list[Note]:
    counts = Counter({group.level: 0 for group in groups if group.level})
    for group in groups:
        if group.level:
            counts[group.level] += len(group.lines)
    if not counts:
        return []
    named = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(8))
    return [Note("outline", f"levels: {named}")]


def _span(source: Source) -> list[Note]:
    """The times of the first and the last line that have one."""
    lines = source.line_count
    first = _stamp(source, range(1, min(lines, 50) + 1))
    last = _stamp(source, range(lines, max(lines - 50, 0), -1))
    return [Note("outline", f"from {first} to {last}")] if first and last else []


def _stamp(source: Source, numbers: range) -> str:
    for number in numbers:
        if match := _STAMP.search(source.lines(number, number), 0, 90):
            return match[0]
    return ""


def _ends(source: Source) -> list[Note]:
    """The first and the last line."""
    lines = source.line_count
    return [
        Note("sample", quote(source.lines(number, number), 300), lines_where(number, number))
        for number in sorted({1, lines})
        if lines and source.lines(number, number).strip()
    ]
