"""The outline of a nested value: its keys with their types and numbers.

The outline goes level by level, so that values near the top come first, and a note describes one
object. Short values are shown verbatim next to their keys. Text that a tool adds around its JSON
(`Below is untrusted data`, `3 rows affected`) is quoted, and is an alert if it warns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import re2  # type: ignore[import-untyped]

from holdfast.condense.condenser import Note
from holdfast.condense.rows import brief
from holdfast.document import Document, Number, step

_MOST_NOTES = 24
_MOST_KEYS = 40
_NOTE_CHARS = 200
_VALUE_CHARS = 60
_PLURALS: dict[type, str] = {dict: "objects", list: "lists", str: "texts", bool: "bools"}
_TYPES: dict[type, str] = {
    dict: "object",
    list: "list",
    str: "text",
    int: "int",
    Number: "number",
    bool: "bool",
}


def outline(value: Any, path: str = "$", deepest: int = 6) -> list[Note]:
    """Describe a value from the top down, in as many notes as are useful."""
    notes: list[Note] = []
    waiting: deque[tuple[str, Any, int]] = deque([(path, value, 0)])
    while waiting and len(notes) < _MOST_NOTES:
        container_path, item, level = waiting.popleft()
        if isinstance(item, dict):
            notes.extend(
                Note("outline", text, container_path) for text in _keys(item, container_path)
            )
        elif level == 0:
            notes.append(Note("outline", type_of(item), container_path))
        if level < deepest:
            waiting.extend((at, child, level + 1) for at, child in _below(item, container_path))
    return notes[:_MOST_NOTES]


def type_of(value: Any, total: int = 0) -> str:
    """The type of a value, with how much it holds; that may be more than is here."""
    if isinstance(value, dict):
        return f"object ({total or len(value):,} keys)" if value else "{}"
    if isinstance(value, list):
        return f"list of {total or len(value):,} {_members(value)}" if value else "[]"
    return "null" if value is None else _TYPES[type(value)]


def _members(items: list[Any]) -> str:
    types = set(map(type, items[:1000]))
    if len(types) > 1:
        return "values"
    return _PLURALS.get(types.pop(), "numbers")


def _below(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the containers inside a value; of an array the first item, which represents all."""
    if isinstance(value, dict):
        for key, child in list(value.items())[:_MOST_KEYS]:
            if child and isinstance(child, (dict, list)):
                yield step(path, key), child
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        yield step(path, 0), value[0]


def _keys(item: dict[str, Any], path: str) -> Iterator[str]:
    """The keys of one object, in lines that are not too long."""
    parts: list[str] = []
    size = len(path)
    for key, child in list(item.items())[:_MOST_KEYS]:
        part = f"{brief(key, limit=_VALUE_CHARS)} {_shown(child)}"
        if parts and size + len(part) > _NOTE_CHARS:
            yield ", ".join(parts)
            parts, size = [], len(path)
        parts.append(part)
        size += len(part) + 2
    if len(item) > _MOST_KEYS:
        parts.append(f"{len(item) - _MOST_KEYS:,} more keys")
    yield ", ".join(parts or ["{}"])


def _shown(value: Any) -> str:
    """Return a short value verbatim, else its type."""
    if isinstance(value, (dict, list)) or value is None or value == "":
        return type_of(value)
    text = brief(value, limit=_VALUE_CHARS)
    return f"= {text}" if text != "…" else type_of(value)


_WARNS = re2.compile(r"(?i)\b(?:untrusted|warning|error|failed|never follow|denied)\b")
_QUOTED_CHARS = 240


def around_notes(found: Document) -> list[Note]:
    """The texts before and after the JSON, shortened where they are long."""
    return [
        Note("alert" if _WARNS.search(text) else "outline", brief(text, limit=_QUOTED_CHARS), "$")
        for text in found.around
    ]
