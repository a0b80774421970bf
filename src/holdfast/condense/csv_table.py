"""Tables in text: values apart by commas, tabs, semicolons or bars, or drawn with characters.

csv_table: after rows. The columns once, the rows that tell most. Rows are counted from 1, without
the header. What a table is, `document` decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.pieces import PASSAGE_CHARS, prose_passages
from holdfast.condense.rows import describe, samples, table_of_columns
from holdfast.condense.source import Source
from holdfast.document import Table

kind = "csv"

_WHAT = {"\t": "TSV", "|": "Table"}


def sniff(source: Source) -> float:
    """Sure of records that all have as many values as the header has names."""
    if source.table is None:
        return 0.0
    return 0.88 if source.table.style == "drawn" else 0.78


def condense(source: Source) -> Condensed:
    """The columns, and the rows that stand out."""
    table = source.table
    if table is None:
        return Condensed(title="Table, unreadable", unit="rows", total=0, notes=())
    described = table_of_columns(table.columns, table.rows)
    width = len(table.columns)
    ragged = sum(len(record) != width for record in table.rows)
    notes = [
        *(Note("outline", text[:200], f"lines {n}-{n}") for n, text in table.others[:6]),
        *describe(described),
        *(
            [Note("outline", f"{ragged:,} rows are longer or shorter than the header")]
            * (ragged > 0)
        ),
        *samples(described, _place),
    ]
    return Condensed(
        title=f"{_WHAT.get(table.separator, 'CSV')}: {len(table.rows):,} rows of {width:,} columns",
        unit="rows",
        total=len(table.rows),
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """One for each row, its values beside their names; then the lines that are no rows."""
    table = source.table
    if table is None:
        return list(prose_passages(source.text, f"lines 1-{max(source.line_count, 1)}"))
    made = row_passages(table)
    made += [Passage(text, f"lines {n}-{n}") for n, text in table.others]
    return made or [Passage(table.separator.join(table.columns), "lines 1-1")]


def row_passages(table: Table) -> list[Passage]:
    """A row in a passage; a long one in several."""
    made: list[Passage] = []
    names, width = table.columns, len(table.columns)
    filled = "; ".join(f"{name.replace('%', '%%')}: %s" for name in names)
    for index, record in enumerate(table.rows):
        if len(record) == width:
            text = filled % tuple(record)
        else:
            named = [f"{name}: {value}" for name, value in zip(names, record, strict=False)]
            text = "; ".join(named + record[width:])
        if len(text) <= 2 * PASSAGE_CHARS:
            made.append(Passage(text, _place(index)))
        else:
            made.extend(prose_passages(text, _place(index)))
    return made


def _place(index: int) -> str:
    return f"rows {index + 1}-{index + 1}"
