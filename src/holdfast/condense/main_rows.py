"""The rows that a document is about, as values: what condensers describe and quote.

main_rows: after source, before the condensers of JSON. Which array it is, `document` decides; here
are the values in it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.condense.once import once
from holdfast.condense.rows import at_both_ends
from holdfast.condense.source import Source
from holdfast.document import Rows, Steps, step
from holdfast.document.json_text import UNREADABLE
from holdfast.document.rows import FEWEST
from holdfast.document.windows import run_of

_NEAR = 5
"""How many steps from the root still count as near the top."""
_LOOKED_AT = 200
_MOST_SAMPLED = 1_000
_SAMPLED_CHARS = 16_000
"""Rows, and about as many characters of them, from each end of an array that is not held whole."""


class RowValues(msgspec.Struct, frozen=True):
    """The main array of a document."""

    path: str
    steps: Steps
    """The path as keys and indices."""
    rows: list[dict[str, Any]]
    """Its objects; an item that is none stands as `{"value": item}`. A series has none."""
    items: list[Any]
    """Its items, as they stand; of a document that is not held whole, the first and the last."""
    total: int
    """How many items there are."""

    @property
    def is_series(self) -> bool:
        """Whether they are numbers, and no objects."""
        return not self.rows

    @property
    def is_whole(self) -> bool:
        """Whether all items are here."""
        return len(self.items) == self.total

    def index(self, number: int) -> int:
        """The index, in the document, of one of the items here."""
        return at_both_ends(number, len(self.items), self.total)


@once
def main_rows(source: Source) -> RowValues | None:
    """The rows a content is about; None if it is about none, or is no JSON."""
    rows, document = source.rows, source.document
    if rows is None or document is None or rows.sort == "items" or len(rows.members) < FEWEST:
        return None
    items = _at(document.value, rows.steps) if document.is_whole else _both_ends(rows)
    if not isinstance(items, list):  # of a key that stands there twice, the value is the last one
        return None
    objects: list[dict[str, Any]] = []
    if rows.sort == "objects":
        objects = [item if type(item) is dict else {"value": item} for item in items]
        objects = [item[rows.inner] for item in objects] if rows.inner else objects
    total = len(items) if document.is_whole else len(rows.members)
    return RowValues(rows.node.path, rows.steps, objects, items, total)


def _both_ends(rows: Rows) -> list[Any] | None:
    """The first rows and the last: as many of each, unless all have room."""
    total, size = len(rows.members), rows.node.end - rows.node.start
    most = max(1, min(_MOST_SAMPLED, total * _SAMPLED_CHARS // max(1, size)))
    ends = [(0, total)] if 2 * most >= total else [(0, most), (total - most, total)]
    try:
        return [
            item
            for first, behind in ends
            for item in run_of(rows.document, rows.members, first, behind)[0]
        ]
    except UNREADABLE:
        return None


def _at(value: Any, steps: Steps) -> Any:
    for name in steps:
        try:
            value = value[name]
        except (KeyError, IndexError, TypeError):
            return None
    return value


@once
def near_top(source: Source) -> list[tuple[Steps, Any]]:
    """Objects and arrays near the top of a document, level by level; of arrays the first items."""
    document = source.document
    if document is None or not isinstance(document.value, (dict, list)):
        return []
    waiting: list[tuple[Steps, Any]] = [((), document.value)]
    for steps, item in waiting:  # grows while it is read
        if len(steps) < _NEAR and len(waiting) < _LOOKED_AT:
            children = item.items() if isinstance(item, dict) else enumerate(item[:2])
            waiting.extend(
                ((*steps, name), child)
                for name, child in children
                if child and isinstance(child, (dict, list))
            )
    return waiting


def path_to(steps: Steps) -> str:
    """Steps as a JSON path."""
    path = "$"
    for name in steps:
        path = step(path, name)
    return path
