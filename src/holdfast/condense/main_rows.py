"""The rows that a document is about: the array of objects that holds most of it.

main_rows: after pieces, before the condensers of JSON. It descends from the root into the heaviest
child, and stops where the weight is spread.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from holdfast.condense.document import Document, document
from holdfast.condense.pieces import child_path
from holdfast.condense.source import Source

_FEWEST = 3
"""Fewer objects than this are no table."""
_SHARE = 0.5
"""Rows are what a document is about if they hold this much of it."""
_OBJECTS = 0.8
"""An array is rows if this many of its items are objects."""
_DEEPEST = 8


class Rows(msgspec.Struct, frozen=True):
    """The main array of a document."""

    path: str
    steps: tuple[str | int, ...]
    """The path as keys and indices."""
    rows: list[dict[str, Any]]
    """Its objects; an item that is none stands as `{"value": item}`."""
    items: list[Any]
    """Its items, as they stand."""


_encode = msgspec.json.Encoder(enc_hook=str).encode
_known: WeakKeyDictionary[Source, Rows | None] = WeakKeyDictionary()


def main_rows(source: Source) -> Rows | None:
    """The rows a content is about; None if it is about none, or is no JSON."""
    try:
        return _known[source]
    except KeyError:
        found = document(source)
        rows = _known[source] = None if found is None else _heaviest(found)
        return rows


def rows_at(value: Any, steps: tuple[str | int, ...] = ()) -> Rows | None:
    """An array of objects as rows; None if it is none."""
    if not isinstance(value, list) or not value:
        return None
    objects = sum(type(item) is dict for item in value)
    if objects < _OBJECTS * len(value):
        return None
    rows = [item if type(item) is dict else {"value": item} for item in value]
    path = "$"
    for step in steps:
        path = child_path(path, step)
    return Rows(path, steps, rows, value)


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
    """How many bytes a value takes as JSON; 0 for a scalar, and for what is too deep to tell."""
    if not isinstance(value, (dict, list)):
        return 0
    try:
        return len(_encode(value))
    except RecursionError:
        return 0
