"""Tables in text: separated by commas, tabs, semicolons or bars, or drawn with characters.

Shows the columns once, and the most informative rows. Rows are counted from 1, without the header.
The package `document` decides what a table is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.pieces import MANY_ROWS, PASSAGE_CHARS, TOGETHER_CHARS, prose_passages
from holdfast.condense.rows import at_both_ends, describe, samples, table_of_columns
from holdfast.condense.source import Source
from holdfast.document import Table

kind = "csv"

_WHAT = {"\t": "TSV", "|": "Table"}
_MOST_ROWS = 20_000
"""Of more rows the columns are described as they are in the first and the last: a column is held
whole while it is described, in a hundred bytes for each cell."""
_SAMPLED = 1_000
_MOST_TIMES = 10


def sniff(source: Source) -> float:
    """Sure of records that all have as many values as the header has names."""
    if source.table is None:
        return 0.0
    return 0.88 if source.table.style == "drawn" else 0.78


def condense(source: Source) -> Condensed:
    """Return the columns and the most informative rows."""
    table = source.table
    if table is None:
        return Condensed(title="Table, unreadable", unit="rows", total=0, notes=())
    total, width = len(table.rows), len(table.columns)
    sampled: Sequence[list[str]] = table.rows
    if total > _MOST_ROWS:
        sampled = [*table.rows[:_SAMPLED], *table.rows[total - _SAMPLED :]]
    described = table_of_columns(table.columns, sampled)
    ragged = sum(len(record) != width for record in table.rows)
    notes = [
        *(Note("outline", text[:200], f"lines {n}-{n}") for n, text in table.others[:6]),
        *describe(described, part_of=total if len(sampled) < total else 0),
        *(
            [Note("outline", f"{ragged:,} rows are longer or shorter than the header")]
            * (ragged > 0)
        ),
        *samples(
            described,
            lambda number: _place(at_both_ends(number, len(sampled), total)),
            is_whole=len(sampled) == total,
        ),
    ]
    return Condensed(
        title=f"{_WHAT.get(table.separator, 'CSV')}: {total:,} rows of {width:,} columns",
        unit="rows",
        total=total,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """One for each row, its values beside their names; then the lines that are no rows."""
    table = source.table
    if table is None:
        return list(prose_passages(source.text, f"lines 1-{max(source.line_count, 1)}"))
    passages = row_passages(table)
    passages += _other_passages(table)
    return passages or [Passage(table.separator.join(table.columns), "lines 1-1")]


def _other_passages(table: Table) -> Iterator[Passage]:
    """The lines that are no rows; very many of them together."""
    least = TOGETHER_CHARS if len(table.others) > MANY_ROWS else 0
    texts: list[str] = []
    size = first = last = 0
    for number, text in table.others:
        if texts and (size >= least or number != last + 1):
            yield Passage("\n".join(texts), f"lines {first}-{last}")
            texts, size = [], 0
        first = first if texts else number
        texts.append(text)
        size, last = size + len(text), number
    if texts:
        yield Passage("\n".join(texts), f"lines {first}-{last}")


def row_passages(table: Table) -> list[Passage]:
    """A row in a passage; a long one in several, of very many the short ones together."""
    passages: list[Passage] = []
    least = TOGETHER_CHARS if len(table.rows) > MANY_ROWS else 0
    texts: list[str] = []
    size = first = 0
    for index, text in enumerate(_row_texts(table)):
        if len(text) > 2 * PASSAGE_CHARS:
            if texts:
                passages.append(Passage("\n".join(texts), _places(first, index - 1)))
            passages.extend(prose_passages(text, _place(index)))
            texts, size, first = [], 0, index + 1
            continue
        texts.append(text)
        size += len(text)
        if size >= least:
            passages.append(Passage("\n".join(texts), _places(first, index)))
            texts, size, first = [], 0, index + 1
    if texts:
        passages.append(Passage("\n".join(texts), _places(first, len(table.rows) - 1)))
    return passages


def _row_texts(table: Table) -> Iterator[str]:
    """Each row with its values beside their names; of very many, the values alone."""
    names, width = table.columns, len(table.columns)
    if len(table.rows) > MANY_ROWS:
        yield from map(table.separator.join, table.rows)
        return
    filled = "; ".join(f"{name.replace('%', '%%')}: %s" for name in names)
    for record in table.rows:
        if len(record) == width:
            yield filled % tuple(record)
        # a line of commas: a row with too many fields for the header
        elif len(record) > _MOST_TIMES * width:
            yield table.separator.join(record)
        else:
            named = [f"{name}: {value}" for name, value in zip(names, record, strict=False)]
            yield "; ".join(named + record[width:])


def _place(index: int) -> str:
    return _places(index, index)


def _places(first: int, last: int) -> str:
    return f"rows {first + 1}-{last + 1}"
