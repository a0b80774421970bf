"""Nested JSON: a document that is no table.

json_tree: after outline. The outline of its keys with types and counts, every error, and the first
object of its large arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.outline import around_notes, outline, type_of
from holdfast.condense.pieces import Place, around_passages, document_passages, path_of
from holdfast.condense.rows import brief
from holdfast.condense.source import Source
from holdfast.document import Document
from holdfast.document.embedded_json import HEAD

kind = "json"

_LARGE = 5
"""Length of an array from which its first item is shown."""
_MOST_SAMPLES = 6
_LOOKED_AT = 2_000
"""How many containers are looked at for large arrays."""


def sniff(source: Source) -> float:
    """Return a low score for any JSON, so that a more specific condenser wins."""
    document = source.document
    if document is None:
        return 0.0
    return 0.5 if document.form in ("json", "lines") else 0.45


def condense(source: Source) -> Condensed:
    """Say which keys there are."""
    document = source.document
    if document is None:
        return Condensed(title="JSON, unreadable", unit="keys", total=0, notes=())
    value = document.value
    total = len(value) if isinstance(value, (dict, list)) else 1
    if not document.is_whole:
        total = len(document.members(*document.root[1:]))
    notes = [*alerts(source), *around_notes(document), *_outline(document), *_firsts(value)]
    return Condensed(
        title=f"JSON: {type_of(value, total)}",
        unit="items" if isinstance(value, list) else "keys",
        total=total,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Return the leaves with the objects that contain them."""
    document = source.document
    if document is None:
        return ()
    return [*around_passages(document), *document_passages(document)]


def _outline(document: Document) -> list[Note]:
    notes = outline(document.value)
    if document.is_whole or not notes:
        return notes
    first = Note("outline", f"As in its first {HEAD:,} characters: {notes[0].text}", notes[0].where)
    return [first, *notes[1:]]


def _firsts(value: Any) -> list[Note]:
    notes = []
    for place, items in _large_arrays(value):
        path = path_of(place)
        notes.append(Note("sample", f"first of {len(items):,}: {brief(items[0])}", f"{path}[0]"))
        if len(notes) == _MOST_SAMPLES:
            break
    return notes


def _large_arrays(value: Any) -> Iterator[tuple[Place, list[Any]]]:
    waiting: list[tuple[Place, Any]] = [((), value)]
    for place, item in waiting:  # grows while it is read: level by level
        if isinstance(item, list) and len(item) >= _LARGE and isinstance(item[0], dict):
            yield place, item
        if len(waiting) < _LOOKED_AT:
            steps = item.items() if isinstance(item, dict) else enumerate(item[:3])
            waiting.extend(
                ((place, step, item), child)
                for step, child in steps
                if child and isinstance(child, (dict, list))
            )
