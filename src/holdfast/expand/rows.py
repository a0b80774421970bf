"""Open parts by structure: a path, some fields of every row, a run of rows.

rows: after content, before expander. Contiguous parts are quoted exactly; selected fields are
combined from the values as written in the content.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from holdfast.document import Document, Member, Node, PathMatch, Rows, Table, find, rows_of
from holdfast.expand.content import OpenContent
from holdfast.expand.options import ExpandOptions, Slice
from holdfast.expand.region import Region, blocks, characters, json_part, lines, listed
from holdfast.quoting import bracketed, item

_Row = dict[str, msgspec.Raw]
_T = TypeVar("_T")
_MOST_NAMES = 40
_LONGEST_HEAD = 120


class NoSuchPart(Exception):  # noqa: N818 - not an error: it becomes a text for the model
    """There is no such part. Caught in expander.py, because it contains names of the content."""

    def __init__(self, reason: str, find: str = "", there: str = "") -> None:
        super().__init__(reason, find)
        self.reason = reason
        self.find = find
        """Value of `find` for a part that exists; empty for the beginning of the content."""
        self.there = there
        """The existing parts, in words of the content."""


def by_structure(opened: OpenContent, options: ExpandOptions) -> Region:
    """Return the part that `path`, `fields` and `slice` select together."""
    document = opened.source.document
    if options.path:
        return _by_path(opened, document, options)
    if document is not None:
        return _of_value(opened, PathMatch(document, document.root), opened.source.rows, options)
    if options.fields:
        return _columns(opened, options)
    return _slice_of_text(opened, options.slice or Slice())


# --- JSON ----------------------------------------------------------------------------------------


def _by_path(opened: OpenContent, document: Document | None, options: ExpandOptions) -> Region:
    if document is None:
        raise NoSuchPart("this content is not JSON, so it has no paths")
    matches, broken = find(document, options.path)
    if broken is not None:
        raise NoSuchPart(
            "the path leads nowhere",
            broken.at,
            f"at {broken.at} is {broken.there}",
        )
    if not matches:
        raise NoSuchPart("the path matches nothing", "$")
    if len(matches) == 1:
        return _of_value(opened, matches[0], _rows_at(matches[0]), options)
    return _of_many(matches, options)


def _rows_at(match: PathMatch) -> Rows | None:
    """The rows of a value that was named: of an array its own elements, however few."""
    rows = rows_of(match)
    if rows is None or match.document.kind(match.node.start, match.node.end) != "array":
        return rows
    members = match.document.members(match.node.start, match.node.end)
    return rows._replace(document=match.document, node=match.node, members=members, inner="")


def _of_many(matches: list[PathMatch], options: ExpandOptions) -> Region:
    chosen = _sliced(matches, options.slice)
    if options.fields:
        rows = [row for match in chosen for row in _rows(match.document, match.node)]
        return _projected(
            rows, options.fields, "rows", lambda one, other: f"matches {one + 1}-{other + 1}"
        )
    texts = [item(f"{m.node.path}: {m.document.text[m.node.start : m.node.end]}") for m in chosen]
    return blocks(texts, listed([m.node.path for m in chosen]), "matches")


def _of_value(
    opened: OpenContent, match: PathMatch, rows: Rows | None, options: ExpandOptions
) -> Region:
    document, node = match
    if options.fields:
        return _fields_of_value(opened, match, rows, options)
    if options.slice is not None:
        return _slice_of_value(opened, match, rows, options.slice)
    unit = rows.node if rows is not None and rows.document is document else node
    base = opened.base(document)
    return _named(json_part(document, unit, node.start, node.end, base=base), node)


def _slice_of_value(
    opened: OpenContent, match: PathMatch, rows: Rows | None, wanted: Slice
) -> Region:
    if rows is None:
        document, (_, start, end) = match
        members = document.members(start, end)
        if not members:
            chosen = _sliced(range(start, end), wanted)
            return characters(document.text[chosen[0] : chosen[-1] + 1], chosen[0])
        rows = Rows(document, match.node, (), members, "items")
    run = _sliced(rows.members, wanted)
    first, last, base = run[0].start, run[-1].end, opened.base(rows.document)
    if rows.document.form == "lines" and rows.node == rows.document.root:
        return lines(opened.source, opened.source.line_at(first), opened.source.line_at(last - 1))
    return json_part(rows.document, rows.node, first, last, base=base)


def _named(region: Region, node: Node) -> Region:
    """A whole value is called by its path; one without parts is never called by its characters."""
    region.whole = node.path
    if not region.starts:
        region.starts, region.name = [0], lambda _first, _last: node.path
    return region


def _fields_of_value(
    opened: OpenContent, match: PathMatch, rows: Rows | None, options: ExpandOptions
) -> Region:
    document, node = match
    own = {str(member.name) for member in document.members(node.start, node.end)}
    named = {field.partition(".")[0] for field in options.fields} | set(options.fields)
    is_object = document.kind(node.start, node.end) == "object"
    if is_object and (own & named or rows is None):
        return _projected(
            _rows(document, node), options.fields, "objects", lambda _one, _other: node.path
        )
    if rows is None:
        raise NoSuchPart("this value has no fields", node.path, node.path)
    run = _sliced(rows.members, options.slice)
    written = ",".join(rows.document.json(row.value, row.end) for row in run)
    decoded = _decoded(f"[{written}]")
    if rows.inner:
        decoded = [{**row, **_row(row[rows.inner])} for row in decoded]
    return _projected(decoded, options.fields, *_run_name(opened, rows, run))


def _run_name(
    opened: OpenContent, rows: Rows, run: Sequence[Member]
) -> tuple[str, Callable[[int, int], str]]:
    """Return the unit of rows and a function that names them."""
    if rows.document.form == "lines" and rows.node == rows.document.root:
        number = opened.source.line_at
        return "lines", lambda a, b: f"lines {number(run[a].start)}-{number(run[b].start)}"
    first, path = int(run[0].name) + 1, rows.node.path
    return "rows", lambda a, b: f"rows {first + a}-{first + b} of {path}"


def _rows(document: Document, node: Node) -> list[_Row]:
    text = document.json(node.start, node.end)
    return _decoded(text if text[:1] == "[" else f"[{text}]")


def _decoded(array: str) -> list[_Row]:
    """Return the rows of an array with values as written; only objects have fields."""
    try:
        return msgspec.json.decode(array, type=list[_Row])
    except msgspec.ValidationError:
        raws = msgspec.json.decode(array, type=list[msgspec.Raw])
        return [_row(raw) for raw in raws]


def _row(raw: msgspec.Raw) -> _Row:
    try:
        return msgspec.json.decode(raw, type=_Row)
    except (ValueError, RecursionError):
        return {}


def _projected(
    rows: Sequence[_Row], fields: Sequence[str], unit: str, name: Callable[[int, int], str]
) -> Region:
    """Return one line of JSON for each row, with those of the fields that it has."""
    texts, any_shown = [], False
    for row in rows:
        values = [(field, _value(row, field)) for field in fields]
        pairs = [f"{json.dumps(f, ensure_ascii=False)}: {v}" for f, v in values if v is not None]
        any_shown = any_shown or bool(pairs)
        texts.append("{" + ", ".join(pairs) + "}")
    if not any_shown:
        names = dict.fromkeys(name for row in rows[:50] for name in row)
        columns = ", ".join(list(names)[:_MOST_NAMES])
        raise NoSuchPart("no row has these fields", there=f"there are: {columns}")
    return blocks(texts, name, unit)


def _value(row: _Row, field: str) -> str | None:
    """Return the value of a field as written; dots select fields of nested objects."""
    raw = row.get(field)
    if raw is not None:
        return str(memoryview(raw), "utf-8")
    first, dot, inner_path = field.partition(".")
    if not dot or first not in row:
        return None
    return _value(_row(row[first]), inner_path)


# --- text ----------------------------------------------------------------------------------------


def _columns(opened: OpenContent, options: ExpandOptions) -> Region:
    table = opened.source.table
    if table is None:
        raise NoSuchPart("this content has no fields: it is text")
    chosen = [table.columns.index(field) for field in options.fields if field in table.columns]
    if not chosen:
        columns = ", ".join(table.columns[:_MOST_NAMES])
        raise NoSuchPart("there are no such columns", there=f"there are: {columns}")
    numbered = _sliced(list(enumerate(table.rows, 1)), options.slice)
    texts = [
        _record([row[at] if at < len(row) else "" for at in chosen], table.separator)
        for _, row in numbered
    ]
    first = numbered[0][0]
    region = blocks(texts, lambda one, other: f"rows {first + one}-{first + other}", "rows")
    region.total = _of_table(table, [table.columns[at] for at in chosen])
    return region


def _record(cells: list[str], separator: str) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=separator, lineterminator="\n").writerow(cells)
    return written.getvalue().removesuffix("\n")


def table_rows(opened: OpenContent, table: Table, first: int, last: int) -> Region:
    """Return the lines of rows `first` to `last` of a table, counted from 0."""
    begin, end = table.lines(first, last)
    region = lines(opened.source, begin, end)
    at, base = opened.source.line_starts, opened.source.line_starts[begin - 1]
    region.starts = [at[table.lines(row, row)[0] - 1] - base for row in range(first, last + 1)]
    region.unit = "rows"
    region.name = lambda one, other: f"rows {first + one + 1}-{first + other + 1}"
    region.total = _of_table(table, table.columns)
    return region


def _of_table(table: Table, columns: list[str]) -> str:
    """How many rows there are, and what their columns mean, in few words."""
    named = _record(columns, table.separator)
    short = named if len(named) <= _LONGEST_HEAD else f"{named[:_LONGEST_HEAD]}…"
    return f" of {len(table.rows):,}, columns {bracketed(short)}"


def _slice_of_text(opened: OpenContent, wanted: Slice) -> Region:
    table = opened.source.table
    if table is not None and table.rows:
        run = _sliced(range(len(table.rows)), wanted)
        return table_rows(opened, table, run[0], run[-1])
    if opened.is_one_line:
        chosen = _sliced(range(len(opened.text)), wanted)
        return characters(opened.text[chosen[0] : chosen[-1] + 1], chosen[0])
    numbers = _sliced(range(1, opened.source.line_count + 1), wanted)
    return lines(opened.source, numbers[0], numbers[-1])


def _sliced(values: Sequence[_T], wanted: Slice | None) -> Sequence[_T]:
    if wanted is None:
        return values
    stop = None if wanted.limit is None else wanted.offset + wanted.limit
    run = values[wanted.offset : stop]
    if not run:
        total = len(values)
        raise NoSuchPart(
            f"there are only {total:,}", f"rows {max(1, total - 4)}-{total}" if total else ""
        )
    return run
