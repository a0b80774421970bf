"""Extract the objects that have an id from a tool's JSON, each with its own values.

An object with an id or a number is a record. Its fact has the id and the fields beside it. Numbers,
ids and links are copied from the text of the result, never rounded. An object without an id is part
of another and is left to the citation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.facts.statements import LINK
from holdfast.store.fact_store import FactKind

MOST_BYTES = 200_000
"""Maximum bytes of a result: parsing its JSON blocks the event loop for up to 7 ms."""
MOST_RECORDS = 20
"""Maximum records per result, the first ones: a list of hundreds is for opening, not for memory."""
_MOST_NODES = 20_000
_MOST_FIELDS = 8
_MOST_VALUE = 100
_MOST_TEXT = 400
_LEAST_FIELDS = 2
_ID = re2.compile(r"(?i)^(?:(.*?)[_-]?(?:id|number|uuid|sha)|iid)$")
_USELESS = re2.compile(
    r"(?i)(?:node_id|request_id|gravatar|avatar|etag|cursor|_links|token|hash|href|_url|position"
    r"|color|icon|object|type"
    r"|page|offset|index|row|line)$"
)
_ID_VALUE = re2.compile(r"^[#\w][\w.:/@#-]{1,63}$")
_TIMES = re2.compile(r"(?i)(?:time|_at|_on|date|timestamp|login|_by)$")
_NO_LABELS = frozenset(
    "result results data response value object entry node edge record row".split()
)
_PASSING = frozenset({"available", "unavailable", "ok", "success", "online", "offline"})
"""States that hold only at the time of the request."""
_NAMES = ("name", "title", "full_name", "subject", "label")


class ToolRecord(NamedTuple):
    """An object in a result, with its values."""

    text: str
    kind: FactKind
    subject: str
    """Identity of the object: a later result about it supersedes this one."""
    place: str
    """The JSON path to it."""


def find_records(content: str) -> list[ToolRecord]:
    """Return the objects with an id in a JSON text, outer ones first; none if it is not JSON."""
    if len(content) > MOST_BYTES or content.lstrip()[:1] not in ("{", "["):
        return []
    try:
        value = json.loads(content, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError):
        return []
    records: dict[str, ToolRecord] = {}
    for place, key, node, owner in _objects(value):
        record = _read_record(node, key, place, owner)
        if record is not None and record.subject not in records:
            records[record.subject] = record
        if len(records) >= MOST_RECORDS:
            break
    return list(records.values())


class _Number(str):
    """A number in its original spelling."""

    __slots__ = ()


class _Node(NamedTuple):
    place: str
    key: str
    """The key that leads to it."""
    value: Any
    owner: str
    """The record of which it is a part; empty if there is none."""


def _objects(value: Any) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """Yield objects with their paths, their keys and the records of which they are parts."""
    level = [_Node("$", "", value, "")]
    nodes = 0
    while level:  # breadth first, so that outer objects come first
        below: list[_Node] = []
        for node in level:
            nodes += 1
            if nodes > _MOST_NODES:
                return
            if isinstance(node.value, dict):
                yield node.place, node.key, node.value, node.owner
            below += _children(node)
        level = below


def _children(node: _Node) -> Iterator[_Node]:
    if isinstance(node.value, dict):
        identity = _identity(node.value, node.key)
        owner = f"{identity[1]} {identity[2]}" if identity else node.owner
        for name, child in node.value.items():
            if isinstance(child, dict | list):
                # A single object may belong to others too, such as the repository of many commits.
                whose = owner if isinstance(child, list) else ""
                yield _Node(f"{node.place}.{name}", name, child, whose)
    elif isinstance(node.value, list):
        for at, child in enumerate(node.value):
            if isinstance(child, dict | list):
                yield _Node(f"{node.place}[{at}]", node.key, child, node.owner)


def _read_record(node: Mapping[str, Any], key: str, place: str, owner: str) -> ToolRecord | None:
    identity = _identity(node, key)
    if identity is None or len(place) > _MOST_VALUE:
        return None
    id_key, label, id_value = identity
    plain = [
        (name, _format(value))
        for name, value in _ranked(node)
        if name != id_key and _is_plain(value) and value not in _PASSING
    ]
    if not _is_informative(plain):
        return None
    # The price of a flight belongs to one booking, the state of an item to one order.
    head = f"{label} {id_value} of {owner}" if owner else f"{label} {id_value}"
    text = f"{head}: "
    fields = [f"{name} = {value}" for name, value in plain][:_MOST_FIELDS]
    while len(fields) > _LEAST_FIELDS and len(text) + len(", ".join(fields)) > _MOST_TEXT:
        fields.pop()
    text += ", ".join(fields)
    # A flight on another day is another flight.
    days = " ".join(value for name, value in plain if name == "date")
    kind: FactKind = "link" if LINK.search(text) else "entity"
    return ToolRecord(text, kind, f"{head} {days}".strip().lower(), place)


def _is_informative(fields: Sequence[tuple[str, str]]) -> bool:
    """Return whether the fields have more than times, switches and machine addresses."""
    telling = [
        name
        for name, value in fields
        if value not in ("true", "false") and _TIMES.search(name) is None and "://" not in value
    ]
    has_name = any(_rank(name) <= 1 for name, _ in fields)
    return len(fields) >= _LEAST_FIELDS and (has_name or len(telling) >= _LEAST_FIELDS)


def _identity(node: Mapping[str, Any], key: str) -> tuple[str, str, str] | None:
    """Return the key, label and value of an object's id.

    Of several ids, its own is the one named after the key that leads to it (`items` has an
    `item_id`), or plain `id`, or the first: a `user_id` after it is a reference to the owner.
    """
    ids = {
        name: (match[1] or "").strip("_-")
        for name, value in node.items()
        if (match := _ID.match(name)) and not _USELESS.search(name) and isinstance(value, str)
    }
    if not ids:
        return None
    called = _singular(key)
    own = next((name for name, label in ids.items() if label and label == called), None)
    plain = next((name for name, label in ids.items() if not label), None)
    name = own or plain or next(iter(ids))
    value, label = str(node[name]), ids[name] or called
    if not _ID_VALUE.match(value) or (value.isalpha() and not value.isupper()):
        return None
    label = "id" if not label or label in _NO_LABELS or any(map(str.isdigit, label)) else label
    return name, label.replace("_", " "), value


def _singular(key: str) -> str:
    if key.endswith("ies"):
        return key[:-3] + "y"
    return key[:-1] if key.endswith("s") and not key.endswith("ss") else key


def _ranked(node: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields that people ask for first, then the others in their order."""
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


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
