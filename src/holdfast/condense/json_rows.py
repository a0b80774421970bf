"""JSON rows: an array of objects, or a document that is mostly one, or JSON lines.

json_rows: after rows and main_rows. The schema once, the rows that tell most, and every error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.main_rows import RowValues, main_rows
from holdfast.condense.once import once
from holdfast.condense.outline import outline
from holdfast.condense.pieces import around_passages, line, row_passages, span, tree_passages
from holdfast.condense.prose import around_notes
from holdfast.condense.rows import describe, samples, table_of
from holdfast.condense.source import Source
from holdfast.document import Document, Number, Steps

kind = "json_rows"


def sniff(source: Source) -> float:
    """Sure of arrays that are the content, less of those with prose around them."""
    rows = main_rows(source)
    document = source.document
    if rows is None or document is None:
        return 0.0
    return 0.75 if document.form in ("json", "lines") else 0.7


def condense(source: Source) -> Condensed:
    """Say what the columns are, and which rows stand out."""
    found, rows = source.document, main_rows(source)
    if found is None or rows is None:
        return Condensed(title="JSON rows, none", unit="rows", total=0, notes=())
    return condensed_rows(source, found, rows, "JSON lines" if found.form == "lines" else "JSON")


def condensed_rows(source: Source, found: Document, rows: RowValues, what: str) -> Condensed:
    """The rows of a document under a name."""
    if rows.is_series:
        return _series(source, found, rows)
    table = table_of(rows.rows)
    place = "" if rows.path == "$" else f" in {rows.path}"
    notes = [
        *alerts(source, found.value),
        *around_notes(found),
        *describe(table),
        *beside(found, rows),
        *samples(table, row_place(source, found, rows)),
    ]
    return Condensed(
        title=f"{what}: {len(rows.items):,} rows of {table.width:,} columns{place}"[:200],
        unit="rows",
        total=len(rows.items),
        notes=tuple(notes),
    )


def _series(source: Source, found: Document, rows: RowValues) -> Condensed:
    items = rows.items
    keys = [float(item) if type(item) is Number else item for item in items]
    low, high = (choose(range(len(keys)), key=keys.__getitem__) for choose in (min, max))
    notes = [
        *alerts(source, found.value),
        *around_notes(found),
        Note("outline", f"numbers {items[low]} to {items[high]}", rows.path),
        *beside(found, rows),
        Note("sample", f"first: {line(items[:12])}", span(1, 12, rows.path)),
        Note("sample", f"highest: {items[high]}", f"{rows.path}[{high}]"),
        Note("sample", f"lowest: {items[low]}", f"{rows.path}[{low}]"),
    ]
    return Condensed(
        title=f"JSON: series of {len(items):,} numbers in {rows.path}"[:200],
        unit="rows",
        total=len(items),
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """One for each row, and those of what stands beside the rows."""
    found, rows = source.document, main_rows(source)
    if found is None:
        return ()
    if rows is None:
        return [*around_passages(found), *tree_passages(found.value)]
    return rows_and_rest(source, found, rows)


def rows_and_rest(source: Source, found: Document, rows: RowValues) -> list[Passage]:
    """Passages of what is beside the rows, then of the rows."""
    if rows.is_series:
        return [*around_passages(found), *tree_passages(found.value)]
    parts = row_passages(rows.items, rows.path)
    if found.form == "lines":
        numbers = _line_numbers(source)
        return [*around_passages(found), *(_in_line(part, numbers) for part in parts)]
    rest = without(found.value, rows.steps)
    return [*around_passages(found), *(tree_passages(rest) if rest else ()), *parts]


def row_place(source: Source, found: Document, rows: RowValues) -> Callable[[int], str]:
    """How a row is named in the source, by its index."""
    if found.form == "lines":
        numbers = _line_numbers(source)
        return lambda index: f"lines {numbers[index]}-{numbers[index]}"
    return lambda index: f"{rows.path}[{index}]"


@once
def _line_numbers(source: Source) -> list[int]:
    return [source.line_at(row.start) for row in source.rows.members] if source.rows else []


def _in_line(part: Passage, numbers: list[int]) -> Passage:
    """The same passage by the lines of its rows, or by the first index of its path."""
    if part.where.startswith("rows "):
        first, last = (numbers[int(row) - 1] for row in part.where.split()[1].split("-"))
        return Passage(part.text, f"lines {first}-{last}")
    number = numbers[int(part.where.partition("[")[2].partition("]")[0])]
    return Passage(part.text, f"lines {number}-{number}")


def beside(found: Document, rows: RowValues) -> list[Note]:
    """What the document says besides its rows."""
    rest = without(found.value, rows.steps)
    return outline(rest, deepest=1) if rest else []


def without(value: Any, steps: Steps) -> Any:
    """The same document with what stands at a place left out; nothing moves by that."""
    if not steps:
        return None
    step, *rest = steps
    if isinstance(value, list):
        return [
            without(item, tuple(rest)) if index == step else item
            for index, item in enumerate(value)
        ]
    return {
        key: without(item, tuple(rest)) if key == step else item
        for key, item in value.items()
        if rest or key != step
    }
