"""Results of SQL: rows, schemas and plans, as drivers, shells and tools write them.

sql_result: after json_rows and entity. JSON with `rows` and `fields`, rows as Python prints them,
rows in a sentence about a query, tables of `psql` and `mysql`, lists of tables with their columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.cutting import shortened
from holdfast.condense.document import Document, document
from holdfast.condense.entity import entities, entity_notes
from holdfast.condense.json_rows import condensed_rows
from holdfast.condense.json_rows import passages as json_passages
from holdfast.condense.main_rows import main_rows, near_top
from holdfast.condense.outline import outline
from holdfast.condense.prose import around_notes
from holdfast.condense.rows import describe, samples, table_of
from holdfast.condense.source import Source
from holdfast.condense.spots import placed_notes
from holdfast.condense.text_table import TextTable, text_table

kind = "sql_result"

_SAID = re.compile(
    r"(?i)\bSQL\b|\bquery (?:result|executed|returned)|\brows? (?:returned|affected)"
)
_PREFIX_CHARS = 300
_BESIDE_ROWS = {"rowCount", "row_count", "fields", "columns", "command", "affectedRows", "query"}
_TABLE_KEYS = {"tableName", "table_name", "recordCount"}


def sniff(source: Source) -> float:
    """Sure of rows that a database speaks of, and of its tables in text."""
    found = document(source)
    if found is None:
        return 0.88 if text_table(source) else 0.0
    if _is_plan(found.value) or _is_answer(source) or _is_catalogue(source):
        return 0.92
    if any(_SAID.search(text[:_PREFIX_CHARS]) for text in found.around):
        return 0.92
    rows = main_rows(source)
    if found.form == "python" and rows:
        return 0.85
    return 0.85 if rows and "sql" in source.tool.lower() else 0.0


def condense(source: Source) -> Condensed:
    """The columns and telling rows; of a catalogue the tables."""
    found = document(source)
    if found is None:
        table = text_table(source)
        return _from_text(table) if table else _nothing()
    tables = entities(source)
    if tables:
        said = [*alerts(source, found.value), *around_notes(found), *entity_notes(tables)]
        notes = tuple(placed_notes(source, said))
        title = f"SQL schema: {len(tables):,} tables"
        return Condensed(title=title, unit="tables", total=len(tables), notes=notes)
    rows = main_rows(source)
    if rows:
        return condensed_rows(source, found, rows, "SQL result")
    return _other(source, found)


def passages(source: Source) -> Sequence[Passage]:
    """One for each row."""
    if document(source) is not None:
        return json_passages(source)
    table = text_table(source)
    if table is None:
        return ()
    said = [
        Passage("; ".join(f"{name}: {value}" for name, value in row.items()), f"lines {n}-{n}")
        for row, n in zip(table.rows, table.lines, strict=True)
    ]
    return [*said, *(Passage(text, f"lines {n}-{n}") for n, text in table.others)]


def _nothing() -> Condensed:
    return Condensed(title="SQL result, unreadable", unit="rows", total=0, notes=())


def _other(source: Source, found: Document) -> Condensed:
    notes = [*alerts(source, found.value), *around_notes(found), *outline(found.value)]
    value = found.value
    return Condensed(
        title="SQL query plan" if _is_plan(value) else "SQL result",
        unit="items" if isinstance(value, list) else "keys",
        total=len(value) if isinstance(value, (dict, list)) else 1,
        notes=tuple(placed_notes(source, notes)),
    )


def _from_text(table: TextTable) -> Condensed:
    described = table_of(table.rows)
    others = [
        Note("outline", shortened(text, 200), f"lines {n}-{n}") for n, text in table.others[:6]
    ]
    notes = [
        *others,
        *describe(described),
        *samples(described, lambda index: f"lines {table.lines[index]}-{table.lines[index]}"),
    ]
    return Condensed(
        title=f"SQL result: {len(table.rows):,} rows of {described.width:,} columns",
        unit="rows",
        total=len(table.rows),
        notes=tuple(notes),
    )


def _is_answer(source: Source) -> bool:
    """Whether rows stand beside what only a driver tells."""
    return any(
        isinstance(item, dict)
        and isinstance(item.get("rows"), list)
        and not _BESIDE_ROWS.isdisjoint(item)
        for _, item in near_top(source)
    )


def _is_plan(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    first = first.get("QUERY PLAN", first) if isinstance(first, dict) else None
    first = first[0] if isinstance(first, list) and first else first
    return isinstance(first, dict) and isinstance(first.get("Plan"), dict)


def _is_catalogue(source: Source) -> bool:
    """Whether it lists the tables of a database."""
    if b"data_type" in source.data and b"columns" in source.data:
        tables = entities(source)
        return bool(tables) and "columns" in tables[0].value
    rows = main_rows(source)
    return (
        rows is not None and not rows.is_series and len(_TABLE_KEYS.intersection(rows.rows[0])) > 1
    )
