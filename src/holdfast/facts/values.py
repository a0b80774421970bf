"""values: the things that a tool's JSON names, each with its own values, copied as they stand.

values: beside statements. An object that has an id or a number of its own is a thing; its fact says
which, and what else stands beside the id. Numbers, ids and links are copied from the text of the
result, never rounded. What has no id of its own is a part of something: it is left to the citation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.facts.statements import LINK
from holdfast.store.fact_shelf import FactKind

MOST_BYTES = 2_000_000
"""Of a result that is read for things."""
MOST_THINGS = 20
"""Of one result: the first ones; a list of hundreds is opened, not learnt by heart."""
_MOST_NODES = 20_000
_MOST_FIELDS = 8
_MOST_VALUE = 100
_MOST_TEXT = 400
_LEAST_FIELDS = 2
_ID = re2.compile(r"(?i)^(?:(.*?)[_-]?(?:id|key|number|uuid|sha|ref|slug|code)|iid)$")
_USELESS = re2.compile(
    r"(?i)(?:node_id|gravatar|avatar|etag|cursor|_links|token|hash|href|_url|position|color|icon|object|type"
    r"|page|offset|index|row|line)$"
)
_ID_VALUE = re2.compile(r"^[#\w][\w.:/@#-]{1,63}$")
_NAMES = ("name", "title", "full_name", "subject", "label")


class Thing(NamedTuple):
    """Something that a result names, with its values."""

    text: str
    kind: FactKind
    subject: str
    """Which thing it is: what a later result says of it takes the place of this."""
    place: str
    """The path to it in the result."""


def things_in(content: str, tool: str) -> list[Thing]:
    """The things that some JSON names, the outer ones first; of anything else, none."""
    if len(content) > MOST_BYTES or content.lstrip()[:1] not in ("{", "["):
        return []
    try:
        value = json.loads(content, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError):
        return []
    things: dict[str, Thing] = {}
    for place, key, node in _objects(value):
        thing = _thing(node, key, place, tool)
        if thing is not None and thing.subject not in things:
            things[thing.subject] = thing
        if len(things) >= MOST_THINGS:
            break
    return list(things.values())


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _objects(value: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Objects with their paths and the key that leads to them, breadth first."""
    level: list[tuple[str, str, Any]] = [("$", "", value)]
    nodes = 0
    while level:
        below: list[tuple[str, str, Any]] = []
        for place, key, node in level:
            nodes += 1
            if nodes > _MOST_NODES:
                return
            if isinstance(node, dict):
                yield place, key, node
                below += (
                    (f"{place}.{name}", name, child)
                    for name, child in node.items()
                    if isinstance(child, dict | list)
                )
            elif isinstance(node, list):
                below += (
                    (f"{place}[{at}]", key, child)
                    for at, child in enumerate(node)
                    if isinstance(child, dict | list)
                )
        level = below


def _thing(node: Mapping[str, Any], key: str, place: str, tool: str) -> Thing | None:
    identity = _identity(node, key)
    if identity is None:
        return None
    id_key, label, id_value = identity
    fields = [
        f"{name} = {_told(value)}"
        for name, value in _ranked(node)
        if name != id_key and _is_plain(value)
    ][:_MOST_FIELDS]
    if len(fields) < _LEAST_FIELDS:
        return None
    head = f"{label} {id_value}"
    text = f"{tool}: {head}: " if tool else f"{head}: "
    while fields and len(text) + len(", ".join(fields)) > _MOST_TEXT:
        fields.pop()
    if len(fields) < _LEAST_FIELDS or len(place) > _MOST_VALUE:
        return None
    text += ", ".join(fields)
    kind: FactKind = "link" if LINK.search(text) else "entity"
    return Thing(text, kind, head.lower(), place)


def _identity(node: Mapping[str, Any], key: str) -> tuple[str, str, str] | None:
    """The key, the name and the value of what tells an object from its like."""
    for name, value in node.items():
        match = _ID.match(name)
        if match is None or _USELESS.search(name) or not isinstance(value, str):
            continue
        own = (match[1] or "").strip("_-")
        # `user_id` inside an order is another's; its own comes first, or is called after the key.
        if _ID_VALUE.match(value) and any(map(str.isdigit, value)):
            label = own or _singular(key)
            return (name, label.replace("_", " "), value) if label else None
    return None


def _singular(key: str) -> str:
    if key.endswith("ies"):
        return key[:-3] + "y"
    return key[:-1] if key.endswith("s") and not key.endswith("ss") else key


def _ranked(node: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Fields that people ask for first, then the others as they stand."""
    fields = [(name, value) for name, value in node.items() if not _USELESS.search(name)]
    return sorted(fields, key=lambda field: _rank(field[0]))


def _rank(name: str) -> int:
    low = name.lower()
    if low in _NAMES:
        return 0
    if any(word in low for word in ("status", "state", "result", "error")):
        return 1
    if any(word in low for word in ("price", "total", "amount", "count", "date", "_at", "time")):
        return 2
    return 3


def _is_plain(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    return isinstance(value, str) and 0 < len(value) <= _MOST_VALUE and value.isprintable()


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
