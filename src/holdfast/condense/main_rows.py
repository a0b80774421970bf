"""The rows that a document is about: the array of objects that holds most of it.

main_rows: after pieces, before the condensers of JSON. It descends from the root into the heaviest
child, and stops where the weight is spread.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from holdfast.condense.document import Document, Number, document
from holdfast.condense.once import once
from holdfast.condense.pieces import child_path
from holdfast.condense.source import Source

_FEWEST = 3
"""Fewer objects than this are no table."""
_SHARE = 0.5
"""Rows are what a document is about if they hold this much of it."""
_OBJECTS = 0.8
"""An array is rows if this many of its items are objects."""
_LONG_SERIES = 20
_DEEPEST = 8
_NEAR = 5
"""How many steps from the root still count as near the top."""
_LOOKED_AT = 200
_NUMBER_BYTES = 5
"""Series of numbers are weighed without being written out."""


Steps = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


class Rows(msgspec.Struct, frozen=True):
    """The main array of a document."""

    path: str
    steps: Steps
    """The path as keys and indices."""
    rows: list[dict[str, Any]]
    """Its objects; an item that is none stands as `{"value": item}`. A series has none."""
    items: list[Any]
    """Its items, as they stand."""

    @property
    def is_series(self) -> bool:
        """Whether they are numbers, and no objects."""
        return not self.rows


_encode = msgspec.json.Encoder(enc_hook=str).encode


@once
def main_rows(source: Source) -> Rows | None:
    """The rows a content is about; None if it is about none, or is no JSON."""
    found = document(source)
    return None if found is None else _heaviest(found)


@once
def near_top(source: Source) -> list[tuple[Steps, Any]]:
    """Objects and arrays near the top of a document, level by level; of arrays the first items."""
    found = document(source)
    if found is None or not isinstance(found.value, (dict, list)):
        return []
    waiting: list[tuple[Steps, Any]] = [((), found.value)]
    for steps, item in waiting:  # grows while it is read
        if len(steps) < _NEAR and len(waiting) < _LOOKED_AT:
            children = item.items() if isinstance(item, dict) else enumerate(item[:2])
            waiting.extend(
                ((*steps, step), child)
                for step, child in children
                if child and isinstance(child, (dict, list))
            )
    return waiting


def path_to(steps: Steps) -> str:
    """Steps as a JSON path."""
    path = "$"
    for step in steps:
        path = child_path(path, step)
    return path


def rows_at(value: Any, steps: Steps = ()) -> Rows | None:
    """An array of objects, or a long series of numbers, as rows; None if it is neither."""
    if not isinstance(value, list) or not value:
        return None
    types = Counter(map(type, value))
    series = len(value) >= _LONG_SERIES and types[int] + types[Number] == len(value)
    if not series and types[dict] < _OBJECTS * len(value):
        return None
    if series:
        return Rows(path_to(steps), steps, [], value)
    rows = [item if type(item) is dict else {"value": item} for item in value]
    return Rows(path_to(steps), steps, rows, value)


def _heaviest(found: Document) -> Rows | None:
    value = found.value
    steps: list[str | int] = []
    whole = weight(value)
    for _ in range(_DEEPEST):
        if isinstance(value, list) and len(value) >= _FEWEST:
            return rows_at(value, tuple(steps))
        if not isinstance(value, (dict, list)) or not value:
            return None
        children = value.items() if isinstance(value, dict) else enumerate(value)
        heaviest, step, value = max(
            ((weight(child), step, child) for step, child in children if child),
            key=lambda entry: entry[0],
            default=(0, "", None),
        )
        if heaviest < whole * _SHARE:
            return None
        steps.append(step)
    return None


def weight(value: Any) -> int:
    """About how many bytes a value takes as JSON; 0 for a scalar and for what is too deep."""
    if not isinstance(value, (dict, list)):
        return 0
    if type(value) is list and value and type(value[0]) in (int, Number):
        return _NUMBER_BYTES * len(value)
    try:
        return len(_encode(value))
    except RecursionError:
        return 0
