"""Notion pages, blocks and searches: what each is, where, when edited, how long.

notion_page: after notion.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.notion import fields, object_of, passages, things, title_of
from holdfast.condense.pieces import leaves
from holdfast.condense.rows import brief
from holdfast.condense.source import Source

__all__ = ["condense", "kind", "passages", "sniff"]

kind = "notion_page"

_SHOWN = 15
_TEXT_KEYS = {"text", "markdown", "content"}


def sniff(source: Source) -> float:
    """Sure of Notion's objects."""
    return 0.92 if things(source) else 0.0


def condense(source: Source) -> Condensed:
    """Say title, id, link, type, date, words and children of each object."""
    found, document_ = things(source), source.document
    if found is None or document_ is None:
        return Condensed(title="Notion answer, unreadable", unit="objects", total=0, notes=())
    notes = alerts(source)
    pairs = list(zip(found.items, found.paths, strict=True))
    notes += [Note("sample", summary(item), path) for item, path in pairs[:_SHOWN]]
    if len(pairs) > _SHOWN:
        notes.append(Note("outline", f"{len(pairs) - _SHOWN:,} more objects"))
    if len(pairs) == 1:
        said = fields(pairs[0][0])
        notes += [Note("outline", brief({name: text}), pairs[0][1]) for name, text in said.items()]
    return Condensed(
        title=_title(found.items),
        unit="objects",
        total=len(pairs),
        notes=tuple(notes),
    )


def summary(item: dict[str, Any]) -> str:
    """An object in a line: `Packing list; id …; url …; page; edited 2025-08-18; 120 words`."""
    edited = item.get("last_edited_time")
    title = brief(title_of(item), limit=120) if title_of(item) else "untitled"
    parts = [
        title,
        *(f"{key}: {item[key]}" for key in ("id", "url") if type(item.get(key)) is str),
        f"type: {_type(item)}",
        f"last_edited: {edited[:10]}" if type(edited) is str else "",
        f"word_count: {word_count(item)}",
        f"has_children: {str(item['has_children']).lower()}" if "has_children" in item else "",
    ]
    return "; ".join(part for part in parts if part)


def word_count(item: Any) -> int:
    """How many words the texts of an object have."""
    plain = other = 0
    for key, value in leaves(item):
        if key == "plain_text" and type(value) is str:
            plain += len(value.split())
        elif key in _TEXT_KEYS and type(value) is str:
            other += len(value.split())
    return plain or other


def _type(item: dict[str, Any]) -> str:
    name = object_of(item)
    inner = item.get("type")
    return f"{inner} block" if name == "block" and type(inner) is str else name


def _title(items: list[dict[str, Any]]) -> str:
    if len(items) == 1:
        name = title_of(items[0])
        text = f"Notion {object_of(items[0])}: {brief(name, limit=150) if name else 'untitled'}"
    else:
        counts = Counter(map(object_of, items)).most_common()
        said = ", ".join(f"{count:,} {name}s" for name, count in counts)
        text = f"Notion answer: {said}"
    return text
