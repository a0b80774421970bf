"""Notion pages, blocks and searches: the type, title, place, last edit and length of each object.

Property values are simplified: `{"type": "select", "select": {"name": "Osaka", …}}` becomes
`Osaka`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.json_rows import passages as all_passages
from holdfast.condense.main_rows import main_rows
from holdfast.condense.objects import Objects, listing, objects_near_top, passages_with
from holdfast.condense.pieces import leaves, line, scalar
from holdfast.condense.rows import brief
from holdfast.condense.source import Source, once

_OBJECTS = ("page", "database", "data_source", "block")


@once
def things(source: Source) -> Objects | None:
    """Notion's objects in a content; None if there are none."""
    if not any(sign in source.data for sign in (b"properties", b"object", b"notion.so")):
        return None
    rows = main_rows(source)
    if rows and is_thing(rows.items[0]):
        pairs = [(n, item) for n, item in enumerate(rows.items) if is_thing(item)]
        return Objects([item for _, item in pairs], [f"{rows.path}[{n}]" for n, _ in pairs])
    return objects_near_top(source, is_thing)


def is_thing(item: Any) -> bool:
    """Whether a value is an object of Notion's."""
    if not isinstance(item, dict):
        return False
    if item.get("object") in _OBJECTS and type(item.get("id")) is str:
        return True
    properties = item.get("properties")
    if isinstance(properties, dict) and properties:
        return all(
            isinstance(value, dict) and "id" in value and type(value.get("type")) is str
            for value in properties.values()
        )
    url = item.get("url")
    return type(url) is str and "notion.so/" in url[:40] and ("title" in item or "text" in item)


def object_of(item: dict[str, Any]) -> str:
    """Return `page`, `database` or `block`; guess from the fields if the type is missing."""
    if item.get("object") in _OBJECTS:
        return "database" if item["object"] == "data_source" else str(item["object"])
    if isinstance(item.get("title"), list):
        return "database"
    return "page"


def title_of(item: dict[str, Any]) -> str:
    """The title of a page or database, the text of a block."""
    if item.get("object") == "block":
        return block_text(item)
    if isinstance(item.get("title"), list):
        return rich_text(item["title"])
    if type(item.get("title")) is str:
        return str(item["title"])
    for value in _properties(item).values():
        if isinstance(value, dict) and value.get("type") == "title":
            return plain(value)
    return ""


def block_text(item: dict[str, Any]) -> str:
    """Return the text of a block."""
    inner = item.get(str(item.get("type")))
    if not isinstance(inner, dict):
        return ""
    text = rich_text(inner.get("rich_text"))
    return text or next((v for k, v in inner.items() if k == "title" and type(v) is str), "")


def rich_text(value: Any) -> str:
    """The plain text of Notion's rich text."""
    if not isinstance(value, list):
        return ""
    return "".join(
        str(part.get("plain_text") or _content(part.get("text")))
        for part in value
        if isinstance(part, dict)
    )


def _content(value: Any) -> str:
    return scalar(value.get("content") or "") if isinstance(value, dict) else ""


def fields(item: dict[str, Any]) -> dict[str, str]:
    """The properties of a page as plain values; of a database their types and options."""
    values = {}
    properties = sorted(_properties(item).items(), key=_is_no_title)
    for name, value in properties:
        text = plain(value) if isinstance(value, dict) else line(value)
        if text:
            values[name] = text
    return values


def _is_no_title(entry: tuple[str, Any]) -> bool:
    return not (isinstance(entry[1], dict) and entry[1].get("type") == "title")


def _properties(item: dict[str, Any]) -> dict[str, Any]:
    properties = item.get("properties")
    return properties if isinstance(properties, dict) else {}


def plain(one: dict[str, Any]) -> str:
    """The value of a property, without what Notion wraps around it."""
    kind = one.get("type")
    value = one.get(kind) if type(kind) is str else None
    if isinstance(value, dict) and "options" in value:
        return f"{kind} of {', '.join(_names(value['options']))}"
    if value == {} and "name" in one:
        return str(kind)
    return _plain_value(kind, value)


def _plain_value(kind: Any, value: Any) -> str:
    if value is None or value in ([], {}, ""):
        return ""
    if kind in ("title", "rich_text"):
        return rich_text(value)
    if isinstance(value, list):
        return ", ".join(_names(value))
    if not isinstance(value, dict):
        return scalar(value)
    if "start" in value:
        return " to ".join(scalar(value[end]) for end in ("start", "end") if value.get(end))
    if type(value.get("type")) is str:
        return plain(value)
    return next(iter(_names([value])))


def _names(values: Any) -> Iterator[str]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            name = next(
                (value[key] for key in ("name", "plain_text", "id") if value.get(key)), None
            )
            yield line(value) if name is None else line(name)
        else:
            yield line(value)


def passages(source: Source) -> Sequence[Passage]:
    """Return each object in plain values, then the complete answer verbatim."""
    entries = things(source)
    if entries is None:
        return all_passages(source)
    return passages_with(source, zip(map(_said, entries.items), entries.paths, strict=True))


def _said(item: dict[str, Any]) -> str:
    title = title_of(item)
    parts = [f"{object_of(item)}: {title}" if title else object_of(item)]
    parts += [f"{name}: {text}" for name, text in fields(item).items()]
    parts += [f"{key}: {item[key]}" for key in ("id", "url") if type(item.get(key)) is str]
    return "; ".join(parts)


kind = "notion_page"

_SHOWN = 15
_TEXT_KEYS = {"text", "markdown", "content"}


def sniff(source: Source) -> float:
    """Sure of Notion's objects."""
    return 0.92 if things(source) else 0.0


def condense(source: Source) -> Condensed:
    """Say title, id, link, type, date, words and children of each object."""
    objects, document_ = things(source), source.document
    if objects is None or document_ is None:
        return Condensed(title="Notion answer, unreadable", unit="objects", total=0, notes=())
    count = len(objects.items)
    # The lines after the first ones are only counted.
    summaries = [summary(item) for item in objects.items[:_SHOWN]] + [""] * (count - _SHOWN)
    notes = listing(source, list(zip(summaries, objects.paths, strict=True)), _SHOWN, "objects")
    if count == 1:
        [path] = objects.paths
        values = fields(objects.items[0])
        notes += [Note("outline", brief({name: text}), path) for name, text in values.items()]
    return Condensed(
        title=_title(objects.items),
        unit="objects",
        total=count,
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
    plain = words = 0
    for key, value in leaves(item):
        if key == "plain_text" and type(value) is str:
            plain += len(value.split())
        elif key in _TEXT_KEYS and type(value) is str:
            words += len(value.split())
    return plain or words


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
        counted = ", ".join(f"{count:,} {name}s" for name, count in counts)
        text = f"Notion answer: {counted}"
    return text
