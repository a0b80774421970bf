"""Find the main array of a document, whose elements are its rows.

The search descends into the largest member, through strings that hold JSON, until no member
dominates. `condense` counts and `expand` slices these same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from holdfast.document.embedded_json import FEW, OPEN_LEVELS, WORTH_OPENING, inside
from holdfast.document.json_text import Document, Member, Node, step
from holdfast.document.paths import PathMatch, resolve_embedded

Steps = tuple[str | int, ...]
"""Keys and indexes that lead to a value."""

FEWEST = 3
"""An array with fewer elements may be a wrapper and is searched further."""
_SHARE = 0.5
"""Rows must hold at least this share of a document."""
_OBJECTS = 0.8
"""An array is a table if this share of its elements are objects."""
# Tolerance for floating-point error: a fifth of ten is two, whatever 1 - 0.8 yields.
_ROUNDING = 1e-9
_LONG_SERIES = 20
_DEEPEST = 8
_NODE = "node"
"""Key under which GraphQL wraps each row of `edges`, beside a `cursor`."""
_BESIDE_NODE = {"node", "cursor"}


class Rows(NamedTuple):
    """The main array of a value."""

    document: Document
    """The document that contains the array: the content's, or the JSON inside one of its strings.
    """
    node: Node
    steps: Steps
    """Keys and indexes from the starting value to the array."""
    members: Sequence[Member]
    sort: str
    """`objects`, `series` of numbers, or `items` of mixed types."""
    inner: str = ""
    """The key under which every row holds its data; empty if rows are not wrapped."""


def rows_of(match: PathMatch) -> Rows | None:
    """Return the rows of a value; None if it has no main array.

    If no array holds most of the value, an array's own elements are its rows.
    """
    match = resolve_embedded(match)
    fallback: Rows | None = None
    steps: list[str | int] = []
    total_size, level = float(match.node.end - match.node.start), 0
    for _ in range(_DEEPEST):
        document, node = match
        members = document.members(node.start, node.end)
        if document.kind(node.start, node.end) == "array" and members:
            rows = _as_rows(match, tuple(steps), members)
            if len(members) >= FEWEST:
                return rows
            fallback = fallback or rows
        heaviest = _largest_container(match, members, level)
        if heaviest is None or heaviest.end - heaviest.value < total_size * _SHARE:
            return fallback
        steps.append(heaviest.name)
        inner = PathMatch(document, _node(node, heaviest))
        match, level = resolve_embedded(inner), level + 1
        if match.document is not document:  # decoded, the string is shorter than its escaped form
            total_size *= (match.node.end - match.node.start) / (heaviest.end - heaviest.value)
            level = 0
    return fallback


def _node(parent: Node, member: Member) -> Node:
    return Node(step(parent.path, member.name), member.value, member.end)


def _largest_container(match: PathMatch, members: Sequence[Member], level: int) -> Member | None:
    """Return the largest member that can have members."""
    document = match.document
    is_wrapper = level < OPEN_LEVELS and len(members) <= FEW and document.form != "lines"
    best: Member | None = None
    for member in members:
        if best is not None and member.end - member.value <= best.end - best.value:
            continue
        if document.is_container(member.value, member.end) or (
            is_wrapper
            and member.end - member.value >= WORTH_OPENING
            and inside(document, member.value, member.end) is not None
        ):
            best = member
    return best


def _as_rows(match: PathMatch, steps: Steps, members: Sequence[Member]) -> Rows:
    document, node = match
    non_objects = (m for m in members if document.kind(m.value, m.end) != "object")
    # Stop counting once too many elements are not objects.
    allowed = int(len(members) * (1 - _OBJECTS) + _ROUNDING)
    non_object_count = sum(1 for _ in islice(non_objects, allowed + 1))
    if non_object_count <= allowed:
        inner = "" if non_object_count else _inner(document, members)
        return Rows(document, node, steps, members, "objects", inner)
    numbers = all(document.text[m.value] in "-0123456789" for m in members)
    is_series = numbers and len(members) >= _LONG_SERIES
    return Rows(document, node, steps, members, "series" if is_series else "items")


def _inner(document: Document, members: Sequence[Member]) -> str:
    """Return `node` if every row is a GraphQL edge."""
    for row in members:
        fields = {member.name: member for member in document.members(row.value, row.end)}
        node = fields.get(_NODE)
        if node is None or not fields.keys() <= _BESIDE_NODE:
            return ""
        if document.kind(node.value, node.end) != "object":
            return ""
    return _NODE
