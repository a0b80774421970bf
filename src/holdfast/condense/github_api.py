"""GitHub's other answers: lists of issues, commits, repositories, runs, or one of them.

github_api: after github.
"""

from __future__ import annotations

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.github import is_github, thing, unit_of
from holdfast.condense.json_rows import beside, passages
from holdfast.condense.main_rows import RowValues, main_rows
from holdfast.condense.outline import outline
from holdfast.condense.rows import brief, describe, samples, table_of
from holdfast.condense.source import Source
from holdfast.document import Document

__all__ = ["condense", "kind", "passages", "sniff"]

kind = "github_api"

_SHOWN = 8


def sniff(source: Source) -> float:
    """Sure of JSON whose things bear GitHub's links."""
    return 0.92 if is_github(source) else 0.0


def condense(source: Source) -> Condensed:
    """Show the first things in a line each, and how they differ."""
    found, rows = source.document, main_rows(source)
    if found is None:
        return Condensed(title="GitHub answer, unreadable", unit="items", total=0, notes=())
    return _one(source, found) if rows is None else _many(source, found, rows)


def _one(source: Source, found: Document) -> Condensed:
    value = found.value if isinstance(found.value, dict) else {}
    notes = [*alerts(source, found.value), *outline(found.value)]
    if value:
        notes.append(Note("sample", thing(value), "$"))
    return Condensed(
        title=f"GitHub answer: {brief(value, limit=120)}",
        unit="keys",
        total=len(found.value),
        notes=tuple(notes),
    )


def _many(source: Source, found: Document, rows: RowValues) -> Condensed:
    table = table_of(rows.rows)
    first = [
        Note("sample", thing(row), f"{rows.path}[{index}]")
        for index, row in enumerate(rows.rows[:_SHOWN])
    ]
    shown = {note.where for note in first}
    others = samples(table, lambda index: f"{rows.path}[{index}]")
    notes = [
        *alerts(source, found.value),
        *first,
        *(note for note in others if note.where not in shown),
        *beside(found, rows),
        *describe(table),
    ]
    place = "" if rows.path == "$" else f" in {rows.path}"
    return Condensed(
        title=f"GitHub answer: {len(rows.items):,} {unit_of(rows.items)}{place}"[:200],
        unit="items",
        total=len(rows.items),
        notes=tuple(notes),
    )
