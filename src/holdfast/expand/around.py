"""Find the surroundings of a line, of a place as citations name it, or of quoted words.

around: after query. A place becomes a span of a region; pages.surround widens it.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from itertools import accumulate

from holdfast.condense.condenser import Passage
from holdfast.condense.kinds import condenser_for
from holdfast.document import Document, Node, PathMatch, find, step
from holdfast.expand.content import OpenContent
from holdfast.expand.region import Region, characters, json_part, lines
from holdfast.expand.rows import NoSuchPart, table_rows
from holdfast.search.words import fold

_NUMBERS = r"\s*(\d{1,12})(?:\s*[-–]\s*(\d{1,12}))?"  # noqa: RUF001 a dash is a dash
_LINES = re.compile(rf"(?:.*\()?(?:\s*l(?:ines?)?)?{_NUMBERS}(?: of [\d,]+)?\s*\)?", re.IGNORECASE)
_ROWS = re.compile(rf"rows?{_NUMBERS}(?:\s+of\s+(\S.*))?", re.IGNORECASE)
_CHARACTERS = re.compile(rf"(?:.*,\s*)?characters?{_NUMBERS}", re.IGNORECASE)
_PARAGRAPH = re.compile(rf"(?:paragraph|passage)s?{_NUMBERS}", re.IGNORECASE)
_FIRST_OF_SEVERAL = re.compile(r"((?:\$|lines? |rows? )[^;]*); ")
"""Several places in the first line of an expansion."""

_LONGEST_PLACE = 2_500
"""Maximum characters of a place, including a path of 2,000. These patterns are not linear (`.*\\(`
tries each bracket), so longer words are only searched for in the text."""

_LAST_CHARACTERS = 200

Place = tuple[Region, int, int]
"""A region and a span of its text."""


def place(opened: OpenContent, around: str) -> Place:
    """Return the region and span of a named place."""
    several = _FIRST_OF_SEVERAL.match(around)
    if several and around not in opened.text:
        around = several[1]
    words = " ".join(around.split()).strip("[]") if not around.startswith("$") else around
    named = words if len(words) <= _LONGEST_PLACE else ""
    if match := _CHARACTERS.fullmatch(named):
        return _at(opened, int(match[1]), int(match[2] or match[1]))
    if match := _ROWS.fullmatch(named):
        return _at_rows(opened, int(match[1]), int(match[2] or match[1]), match[3] or "")
    if match := _PARAGRAPH.fullmatch(named):
        return _at_passages(opened, int(match[1]), int(match[2] or match[1]))
    if around.startswith("$") and opened.source.document is not None:
        return _at_path(opened, opened.source.document, around)
    in_text = _in_text(opened.text, around)
    if in_text is not None and not (words.isdigit() or _looks_like_a_place(words)):
        return _at(opened, *in_text)
    if match := _LINES.fullmatch(named):
        return _at_lines(opened, int(match[1]), int(match[2] or match[1]))
    if in_text is None:
        raise NoSuchPart("the content has no such place or text")
    return _at(opened, *in_text)


def _looks_like_a_place(words: str) -> bool:
    return re.match(r"(?:lines?\s|section:)", words, re.IGNORECASE) is not None


def _in_text(text: str, words: str) -> tuple[int, int] | None:
    at = text.find(words)
    if at < 0:
        at = fold(text).find(fold(words))
    return None if at < 0 or not words else (at, at + len(words))


def _at(opened: OpenContent, start: int, end: int) -> Place:
    """Return a span of the text, in lines or in members of the JSON value around it."""
    if start >= len(opened.text):
        total = len(opened.text)
        last = f"characters {max(0, total - _LAST_CHARACTERS)}-{total}"
        raise NoSuchPart(f"there are only {total:,} characters", last)
    end = min(max(end, start + 1), len(opened.text))
    if opened.source.document is None and _is_long_line(opened, start):
        return characters(opened.text), start, end
    return opened.whole(), start, end


def _is_long_line(opened: OpenContent, at: int) -> bool:
    number = opened.source.line_at(at)
    return len(opened.source.lines(number, number)) > 4000


def _at_lines(opened: OpenContent, first: int, last: int) -> Place:
    total = opened.source.line_count
    if not 1 <= first <= total:
        raise NoSuchPart(f"there are only {total:,} lines", f"lines {total}-{total}")
    last = min(max(first, last), total)
    starts = [*opened.source.line_starts, len(opened.text)]
    if opened.is_one_line:
        return opened.whole(), 0, len(opened.text)
    return lines(opened.source, 1, total), starts[first - 1], starts[last]


def _at_rows(opened: OpenContent, first: int, last: int, path: str) -> Place:
    table = opened.source.table
    if table is not None and table.rows:
        first, last = _within(first, last, len(table.rows))
        region = table_rows(opened, table, 0, len(table.rows) - 1)
        ends = [*region.starts, len(region.text)]
        return region, ends[first - 1], ends[last]
    array = _array(opened, path)
    if array is None:
        return _at_lines(opened, first, last)
    document, node = array
    members = document.members(node.start, node.end)
    first, last = _within(first, last, len(members))
    region = json_part(document, node, node.start, node.end, base=opened.base(document))
    return region, members[first - 1].start - node.start, members[last - 1].end - node.start


def _within(first: int, last: int, total: int) -> tuple[int, int]:
    if not 1 <= first <= total:
        raise NoSuchPart(f"there are only {total:,} rows", f"rows {total}-{total}")
    return first, min(max(first, last), total)


def _array(opened: OpenContent, path: str) -> PathMatch | None:
    document, rows = opened.source.document, opened.source.rows
    if document is None:
        return None
    if not path:
        return PathMatch(rows.document, rows.node) if rows else PathMatch(document, document.root)
    matches, _ = find(document, path)
    if not matches:
        raise NoSuchPart("the path of the rows leads nowhere", "$")
    return matches[0]


def _at_path(opened: OpenContent, document: Document, path: str) -> Place:
    """Return the span of a value among its neighbours."""
    matches, broken = find(document, path)
    if not matches:
        existing = f"at {broken.at} is {broken.there}" if broken else ""
        raise NoSuchPart("the path leads nowhere", broken.at if broken else "$", existing)
    inner, node = matches[0]
    parent = _parent(inner, node)
    region = json_part(inner, parent, parent.start, parent.end, base=opened.base(inner))
    return region, node.start - parent.start, node.end - parent.start


def _parent(document: Document, node: Node) -> Node:
    """Return the container of a value; for the root, the root itself."""
    parent, walked = document.root, ""
    while True:
        members = document.members(parent.start, parent.end)
        at = bisect.bisect_right(members, node.start, key=lambda member: member.value) - 1
        if at < 0 or members[at].end < node.end:
            return document.root
        member = members[at]
        if (member.value, member.end) == (node.start, node.end):
            before = node.path.removesuffix(step(walked, member.name))
            return Node(before + walked, parent.start, parent.end)
        walked = step(walked, member.name)
        parent = Node(walked, member.value, member.end)


def _at_passages(opened: OpenContent, first: int, last: int) -> Place:
    passages: Sequence[Passage] = condenser_for(opened.source, opened.kind).passages(opened.source)
    if not 1 <= first <= len(passages):
        last_one = f"paragraph {len(passages)}" if passages else ""
        raise NoSuchPart(f"there are only {len(passages):,} passages", last_one)
    last = min(max(first, last), len(passages))
    passage = passages[first - 1]
    if last > first:
        return _among(passages, first - 1, last - 1)
    if not _PARAGRAPH.fullmatch(passage.where) and passage.where:
        return place(opened, passage.where)
    span = _in_text(opened.text, passage.text)
    return _at(opened, *span) if span else _among(passages, first - 1, last - 1)


def _among(passages: Sequence[Passage], first: int, last: int) -> Place:
    """Return passages among their neighbours; their texts may differ from the content."""
    before = max(0, first - 50)
    texts = [passage.text for passage in passages[before : last + 50]]
    starts = [0, *accumulate(len(text) + 2 for text in texts)][:-1]
    region = Region(
        "\n\n".join(texts),
        unit="passages",
        starts=starts,
        name=lambda one, other: f"paragraphs {before + one + 1}-{before + other + 1}",
        total=f" of {len(passages):,}",
    )
    return region, starts[first - before], starts[last - before] + len(passages[last].text)
