"""The rows that a document is about, as values: what condensers describe and quote.

main_rows: after source, before the condensers of JSON. Which array it is, `document` decides; here
are the values in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import msgspec

from holdfast.condense.rows import at_both_ends
from holdfast.condense.source import Source, once
from holdfast.document import Rows, Steps, step
from holdfast.document.json_text import UNREADABLE
from holdfast.document.rows import FEWEST
from holdfast.document.windows import run_of, runs_of

_NEAR = 5
"""How many steps from the root still count as near the top."""
_LOOKED_AT = 200
_MOST_ROWS = 20_000
"""Above this number the first and last rows represent all: decoding all columns would be too slow.
"""
_MOST_SAMPLED = 1_000
_SAMPLED_CHARS = 16_000
"""Rows, and about as many characters of them, from each end of an array that is not held whole."""


class RowValues(msgspec.Struct, frozen=True):
    """The main array of a document."""

    path: str
    steps: Steps
    """The path as keys and indices."""
    rows: Sequence[dict[str, Any]]
    """Its objects; an item of another type becomes `{"value": item}`. A series has none."""
    items: Sequence[Any]
    """Its items, undecoded; of very many, the first and the last."""
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
    if not document.is_whole:
        return _not_held(rows)
    items = _at(document.value, rows.steps)
    if not isinstance(items, list):  # of a duplicate key, the last value counts
        return None
    objects = [_row(item, rows.inner) for item in items] if rows.sort == "objects" else []
    return RowValues(rows.node.path, rows.steps, objects, items, len(items))


def _row(item: Any, inner: str) -> dict[str, Any]:
    row: dict[str, Any] = item if type(item) is dict else {"value": item}
    return row[inner] if inner else row


def _not_held(rows: Rows) -> RowValues | None:
    """The rows of a document that is read a part at a time."""
    total = len(rows.members)
    objects: Sequence[dict[str, Any]] = ()
    if rows.sort == "objects" and total <= _MOST_ROWS:
        objects = _RowRuns(rows)
        return RowValues(rows.node.path, rows.steps, objects, objects, total)
    items = _both_ends(rows)
    if items is None:
        return None
    if rows.sort == "objects":
        objects = [_row(item, rows.inner) for item in items]
    return RowValues(rows.node.path, rows.steps, objects, items, total)


class _RowRuns(Sequence[dict[str, Any]]):
    """Rows that are decoded a run at a time, whenever they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows.members)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for _, run in runs_of(self._rows):
            for item in run:
                yield _row(item, self._rows.inner)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        at = range(len(self))[index]
        (item,), _ = run_of(self._rows.document, self._rows.members, at, at + 1)
        return _row(item, self._rows.inner)


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
