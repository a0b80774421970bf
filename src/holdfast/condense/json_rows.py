"""JSON rows: an array of objects, a document that is mostly one array, or JSON lines.

Shows the schema once, the most informative rows, and every error.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.main_rows import RowValues, main_rows
from holdfast.condense.outline import around_notes, outline
from holdfast.condense.pieces import (
    around_passages,
    document_passages,
    line,
    row_passages,
    span,
    tree_passages,
)
from holdfast.condense.rows import describe, samples, table_of
from holdfast.condense.source import Source, once
from holdfast.document import Document, Number, Steps
from holdfast.document.embedded_json import LARGE
from holdfast.document.json_text import decoder
from holdfast.document.windows import runs_of

kind = "json_rows"


def sniff(source: Source) -> float:
    """Sure of arrays that are the content, less of those with prose around them."""
    rows = main_rows(source)
    document = source.document
    if rows is None or document is None:
        return 0.0
    return 0.75 if document.form in ("json", "lines") else 0.7


def condense(source: Source) -> Condensed:
    """Return the columns, and the most informative rows."""
    document, rows = source.document, main_rows(source)
    if document is None or rows is None:
        return Condensed(title="JSON rows, none", unit="rows", total=0, notes=())
    what = "JSON lines" if document.form == "lines" else "JSON"
    return condensed_rows(source, document, rows, what)


def condensed_rows(source: Source, document: Document, rows: RowValues, what: str) -> Condensed:
    """The rows of a document under a name."""
    if rows.is_series:
        return _series(source, document, rows)
    table = table_of(rows.rows)
    place = "" if rows.path == "$" else f" in {rows.path}"
    width = f"{table.width:,}" if rows.is_whole else f"at least {table.width:,}"
    notes = [
        *alerts(source),
        *around_notes(document),
        *describe(table, part_of=0 if rows.is_whole else rows.total),
        *beside(source, document, rows),
        *samples(table, row_place(source, document, rows), is_whole=rows.is_whole),
    ]
    return Condensed(
        title=f"{what}: {rows.total:,} rows of {width} columns{place}"[:200],
        unit="rows",
        total=rows.total,
        notes=tuple(notes),
    )


def _series(source: Source, document: Document, rows: RowValues) -> Condensed:
    (low, lowest), (high, highest) = _extremes(source, rows)
    notes = [
        *alerts(source),
        *around_notes(document),
        Note("outline", f"numbers {lowest} to {highest}", rows.path),
        *beside(source, document, rows),
        Note("sample", f"first: {line(rows.items[:12])}", span(1, 12, rows.path)),
        Note("sample", f"highest: {highest}", f"{rows.path}[{high}]"),
        Note("sample", f"lowest: {lowest}", f"{rows.path}[{low}]"),
    ]
    return Condensed(
        title=f"JSON: series of {rows.total:,} numbers in {rows.path}"[:200],
        unit="rows",
        total=rows.total,
        notes=tuple(notes),
    )


def _extremes(source: Source, rows: RowValues) -> tuple[tuple[int, Any], tuple[int, Any]]:
    """The smallest number of a series and the largest, each with its index."""
    runs: Iterable[tuple[int, Sequence[Any]]] = [(0, rows.items)]
    if not rows.is_whole and source.rows is not None:
        runs = runs_of(source.rows)
    low = high = (0, rows.items[0])
    smallest = largest = _number(rows.items[0])
    for first, items in runs:
        keys = list(map(_number, items))
        if (key := min(keys)) < smallest:
            smallest, at = key, keys.index(key)
            low = first + at, items[at]
        if (key := max(keys)) > largest:
            largest, at = key, keys.index(key)
            high = first + at, items[at]
    return low, high


def _number(item: Any) -> float:
    return float(item) if type(item) is Number else item


def passages(source: Source) -> Sequence[Passage]:
    """Return one passage per row, and those of the fields around the rows."""
    document, rows = source.document, main_rows(source)
    if document is None:
        return ()
    if rows is None:
        return [*around_passages(document), *document_passages(document)]
    return rows_and_rest(source, document, rows)


def rows_and_rest(source: Source, document: Document, rows: RowValues) -> list[Passage]:
    """Return the passages around the rows, then those of the rows."""
    if rows.is_series or not (document.is_whole or document.form == "lines"):
        return [*around_passages(document), *document_passages(document)]
    if document.form == "lines":
        parts = (
            row_passages(rows.items, rows.path)
            if document.is_whole
            else document_passages(document)
        )
        numbers = _line_numbers(source)
        return [*around_passages(document), *(_in_line(part, numbers) for part in parts)]
    around = without(document.value, rows.steps)
    parts = row_passages(rows.items, rows.path)
    return [*around_passages(document), *(tree_passages(around) if around else ()), *parts]


def row_place(source: Source, document: Document, rows: RowValues) -> Callable[[int], str]:
    """How one of the rows here is named in the source."""
    if document.form == "lines":
        numbers = _line_numbers(source)
        return lambda number: "lines {0}-{0}".format(numbers[rows.index(number)])
    return lambda number: f"{rows.path}[{rows.index(number)}]"


@once
def _line_numbers(source: Source) -> Sequence[int]:
    rows = source.rows.members if source.rows else ()
    return array("I", (source.line_at(row.start) for row in rows))


def _in_line(part: Passage, numbers: Sequence[int]) -> Passage:
    """The same passage by the lines of its rows, or by the first index of its path."""
    if part.where.startswith("rows "):
        first, last = (numbers[int(row) - 1] for row in part.where.split()[1].split("-"))
        return Passage(part.text, f"lines {first}-{last}")
    number = numbers[int(part.where.partition("[")[2].partition("]")[0])]
    return Passage(part.text, f"lines {number}-{number}")


def beside(source: Source, document: Document, rows: RowValues) -> list[Note]:
    """Return notes about the document outside of its rows."""
    value = document.value if document.is_whole else _around_rows(source, document)
    around = without(value, rows.steps) if value else None
    return outline(around, deepest=1) if around else []


def _around_rows(source: Source, document: Document) -> Any:
    """Return a document with an empty main array; None if the text around the rows is too long."""
    rows = source.rows
    if rows is None or rows.document is not document or document.form == "lines":
        return None
    (start, end), (_, first, last) = document.root[1:], rows.node
    if end - last + first - start > LARGE:
        return None
    return decoder.decode(f"{document.text[start:first]}[]{document.text[last:end]}")


def without(value: Any, steps: Steps) -> Any:
    """Return the document without the value at a place; other places keep their positions."""
    if not steps:
        return None
    step, *further = steps
    if isinstance(value, list):
        return [
            without(item, tuple(further)) if index == step else item
            for index, item in enumerate(value)
        ]
    return {
        key: without(item, tuple(further)) if key == step else item
        for key, item in value.items()
        if further or key != step
    }
