"""Notion databases: a database with its properties, or its pages as the rows of a table.

notion_database: after notion. A query's pages are said as rows of plain values.
"""

from __future__ import annotations

from typing import Any

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.notion import Things, fields, object_of, passages, things
from holdfast.condense.notion_page import summary
from holdfast.condense.rows import brief, describe, samples, table_of
from holdfast.condense.source import Source

__all__ = ["condense", "kind", "passages", "sniff"]

kind = "notion_database"

_SHOWN = 15


def sniff(source: Source) -> float:
    """Sure of databases, and of pages that all have the same properties."""
    found = things(source)
    return 0.94 if found and (_are_databases(found) or _are_rows(found)) else 0.0


def condense(source: Source) -> Condensed:
    """The schema of databases; the columns and telling rows of a query."""
    found, document_ = things(source), source.document
    if found is None or document_ is None:
        return Condensed(title="Notion database, unreadable", unit="rows", total=0, notes=())
    notes = alerts(source, document_.value)
    if _are_databases(found):
        notes += _databases(found)
        title, unit = f"Notion databases: {len(found.items):,}", "databases"
    else:
        table = table_of([_row(item) for item in found.items])
        notes += describe(table)
        notes += samples(table, lambda index: found.paths[index])
        title = f"Notion database: {len(found.items):,} pages of {table.width - 2:,} properties"
        unit = "rows"
    return Condensed(title=title, unit=unit, total=len(found.items), notes=tuple(notes))


def _databases(found: Things) -> list[Note]:
    notes = []
    for item, path in list(zip(found.items, found.paths, strict=True))[:_SHOWN]:
        notes.append(Note("sample", summary(item), path))
        notes.append(Note("outline", brief(fields(item)), f"{path}.properties"))
    if len(found.items) > _SHOWN:
        notes.append(Note("outline", f"{len(found.items) - _SHOWN:,} more databases"))
    return notes


def _row(item: dict[str, Any]) -> dict[str, Any]:
    return {**fields(item), "id": item.get("id"), "url": item.get("url")}


def _are_databases(found: Things) -> bool:
    return all(object_of(item) == "database" for item in found.items)


def _are_rows(found: Things) -> bool:
    """Whether all are pages with the same properties, as a query of one database gives them."""
    if not found.listed or any(object_of(item) != "page" for item in found.items):
        return False
    names = [set(item.get("properties") or ()) for item in found.items]
    return len(names[0]) > 1 and all(name == names[0] for name in names)
