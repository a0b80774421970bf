"""A document read a part at a time: runs of members, decoded, that together are all of it.

windows: after rows. What is said of very many small values (`density`) is said of one window after
the other, so that no more than one of them is held. A member too large for a window is gone into,
also through a string that holds JSON.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from holdfast.document.json_text import UNREADABLE, Document, Member, Node, decoder, step
from holdfast.document.paths import Match, opened
from holdfast.document.rows import Rows

WINDOW = 16_000
"""Characters that are decoded together; at sixty times their size, one megabyte."""
_DEEPEST = 48
"""Below this nesting a large value is given as it is written: each level is read once more."""


class Window(NamedTuple):
    """Members that follow each other in one container."""

    path: str
    """Of the container."""
    first: int
    """The index of the first, in an array."""
    value: Any
    """A list or an object of them; a text where one stands deeper than is gone into."""
    written: str
    """The same as it stands."""
    total: int = 1
    """How many members the container has."""


def windows(document: Document) -> Iterator[Window]:
    """All of a document, in the order it stands."""
    levels = [_within(Match(document, document.root))]
    while levels:
        part = next(levels[-1], None)
        if part is None:
            levels.pop()
        elif isinstance(part, Window):
            yield part
        elif len(levels) < _DEEPEST:
            levels.append(_within(part))
        else:
            text = part.document.text[part.node.start : part.node.end]
            for at in range(0, len(text), WINDOW):
                piece = text[at : at + WINDOW]
                yield Window(part.node.path, 0, piece, piece)


def run_of(
    document: Document, members: Sequence[Member], first: int, behind: int
) -> tuple[list[Any], str]:
    """The values of some elements that follow each other, and how they are written."""
    if document.form == "lines":  # nothing parts them but the ends of their lines
        run = members[first:behind]
        written = ",".join(document.text[member.value : member.end] for member in run)
    else:
        written = _written(document, members, first, behind)
    return decoder.decode(f"[{written}]"), written


def runs_of(rows: Rows) -> Iterator[tuple[int, list[Any]]]:
    """The elements of an array, a run at a time, each with the index of its first."""
    many = max(1, len(rows.members) * WINDOW // max(1, rows.node.end - rows.node.start))
    for first in range(0, len(rows.members), many):
        behind = min(first + many, len(rows.members))
        yield first, run_of(rows.document, rows.members, first, behind)[0]


def _written(document: Document, members: Sequence[Member], first: int, behind: int) -> str:
    return document.text[members[first].start : members[behind - 1].end]


def _within(match: Match) -> Iterator[Window | Match]:
    """The windows of one container, and the members of it that are too large for one."""
    document, node = match = opened(match)
    members = document.members(node.start, node.end)
    first = 0
    while first < len(members):
        # Not one by one: there may be one in each three characters.
        end = members[first].start + WINDOW
        behind = bisect_right(members, end, first, key=lambda member: member.end)
        if behind == first and _has_parts(document, node, members[first]):
            yield Match(document, _node(node, members[first]))
        else:
            yield _window(match, members, first, max(behind, first + 1))
        first = max(behind, first + 1)


def _window(match: Match, members: Sequence[Member], first: int, behind: int) -> Window:
    document, node = match
    try:
        if document.kind(node.start, node.end) != "object":
            run = run_of(document, members, first, behind)
            return Window(node.path, first, *run, len(members))
        written = _written(document, members, first, behind)
        return Window(node.path, 0, decoder.decode(f"{{{written}}}"), written)
    except UNREADABLE:  # the caller stands deeper than when the text was read
        written = _written(document, members, first, behind)
        return Window(node.path, first, written, written)


def _has_parts(document: Document, node: Node, member: Member) -> bool:
    inner = opened(Match(document, _node(node, member)))
    return inner.document.is_container(inner.node.start, inner.node.end)


def _node(parent: Node, member: Member) -> Node:
    return Node(step(parent.path, member.name), member.value, member.end)
