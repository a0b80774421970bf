"""The rows that a document is about: the array that holds most of it.

rows: after paths. It descends from a value into its heaviest member, through strings that hold
JSON, and stops where the weight is spread. What a citation counts as rows is what an expansion
slices: both ask here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from holdfast.document.json_text import Document, Member, Node, step
from holdfast.document.paths import Match, opened
from holdfast.document.wrapping import FEW, OPEN_LEVELS, WORTH_OPENING, inside

Steps = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

FEWEST = 3
"""Fewer elements than this are looked into, for they may wrap what is meant."""
_SHARE = 0.5
"""Rows are what a document is about if they hold this much of it."""
_OBJECTS = 0.8
"""An array is a table if this many of its elements are objects."""
_ROUNDING = 1e-9
"""A fifth of ten is two, whatever 1 - 0.8 is."""
_LONG_SERIES = 20
_DEEPEST = 8
_NODE = "node"
"""What GraphQL wraps each row of `edges` in, with a `cursor` beside it."""
_BESIDE_NODE = {"node", "cursor"}


class Rows(NamedTuple):
    """The array that a value is about."""

    document: Document
    """The one it stands in: the content's, or the JSON inside one of its strings."""
    node: Node
    steps: Steps
    """The path as keys and indices, from the value that was asked about."""
    members: Sequence[Member]
    sort: str
    """`objects`, `series` of numbers, or `items` of any sort."""
    inner: str = ""
    """The key under which each row holds what it is about, if all have the same; else ""."""


def rows_of(match: Match) -> Rows | None:
    """The rows of a value; None if it is about none.

    Where no array holds most of the value, an array is about its own elements.
    """
    match = opened(match)
    fallback: Rows | None = None
    steps: list[str | int] = []
    whole, level = float(match.node.end - match.node.start), 0
    for _ in range(_DEEPEST):
        document, node = match
        members = document.members(node.start, node.end)
        if document.kind(node.start, node.end) == "array" and members:
            rows = _as_rows(match, tuple(steps), members)
            if len(members) >= FEWEST:
                return rows
            fallback = fallback or rows
        heaviest = _heaviest(match, members, level)
        if heaviest is None or heaviest.end - heaviest.value < whole * _SHARE:
            return fallback
        steps.append(heaviest.name)
        inner = Match(document, _node(node, heaviest))
        match, level = opened(inner), level + 1
        if match.document is not document:  # the same weight, without the escapes of a string
            whole *= (match.node.end - match.node.start) / (heaviest.end - heaviest.value)
            level = 0
    return fallback


def _node(parent: Node, member: Member) -> Node:
    return Node(step(parent.path, member.name), member.value, member.end)


def _heaviest(match: Match, members: Sequence[Member], level: int) -> Member | None:
    """The largest member that has members of its own."""
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


def _as_rows(match: Match, steps: Steps, members: Sequence[Member]) -> Rows:
    document, node = match
    others = (m for m in members if document.kind(m.value, m.end) != "object")
    # As soon as there are too many of them it is no table.
    most = int(len(members) * (1 - _OBJECTS) + _ROUNDING)
    few = len(list(islice(others, most + 1)))
    if few <= most:
        inner = "" if few else _inner(document, members)
        return Rows(document, node, steps, members, "objects", inner)
    numbers = all(document.text[m.value] in "-0123456789" for m in members)
    is_series = numbers and len(members) >= _LONG_SERIES
    return Rows(document, node, steps, members, "series" if is_series else "items")


def _inner(document: Document, members: Sequence[Member]) -> str:
    """`node`, where every row is one of GraphQL's edges."""
    for row in members:
        fields = {member.name: member for member in document.members(row.value, row.end)}
        node = fields.get(_NODE)
        if node is None or not fields.keys() <= _BESIDE_NODE:
            return ""
        if document.kind(node.value, node.end) != "object":
            return ""
    return _NODE
