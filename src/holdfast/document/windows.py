"""Decode a document in windows: consecutive members that together cover it.

Very many small values (`density`) are processed one window at a time, so that memory holds only one
window. A member larger than a window is split further, including JSON inside a string.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from holdfast.document.json_text import UNREADABLE, Document, Member, Node, decoder, step
from holdfast.document.paths import PathMatch, resolve_embedded
from holdfast.document.rows import Rows

WINDOW = 16_000
"""Characters decoded together; at sixty times their size, one megabyte."""
_DEEPEST = 48
"""Large values nested deeper than this are returned as text, because each level is read again."""


class DocumentWindow(NamedTuple):
    """Consecutive members of one container."""

    path: str
    """Path of the container."""
    first: int
    """Index of the first member in an array."""
    value: Any
    """The members as a list or object; the text if they are nested too deep to decode."""
    written: str
    """The members as written in the document."""
    total: int = 1
    """Number of members in the container."""


def windows(document: Document) -> Iterator[DocumentWindow]:
    """Yield all of a document in windows, in document order."""
    levels = [_within(PathMatch(document, document.root))]
    while levels:
        part = next(levels[-1], None)
        if part is None:
            levels.pop()
        elif isinstance(part, DocumentWindow):
            yield part
        elif len(levels) < _DEEPEST:
            levels.append(_within(part))
        else:
            text = part.document.text[part.node.start : part.node.end]
            for at in range(0, len(text), WINDOW):
                piece = text[at : at + WINDOW]
                yield DocumentWindow(part.node.path, 0, piece, piece)


def run_of(
    document: Document, members: Sequence[Member], first: int, stop: int
) -> tuple[list[Any], str]:
    """Return the values of consecutive elements and their text."""
    if document.form == "lines":  # JSON lines: only line ends separate the members
        run = members[first:stop]
        written = ",".join(document.text[member.value : member.end] for member in run)
    else:
        written = _written(document, members, first, stop)
    return decoder.decode(f"[{written}]"), written


def runs_of(rows: Rows) -> Iterator[tuple[int, list[Any]]]:
    """Yield the elements of an array in runs, each with the index of its first element."""
    many = max(1, len(rows.members) * WINDOW // max(1, rows.node.end - rows.node.start))
    for first in range(0, len(rows.members), many):
        stop = min(first + many, len(rows.members))
        yield first, run_of(rows.document, rows.members, first, stop)[0]


def _written(document: Document, members: Sequence[Member], first: int, stop: int) -> str:
    return document.text[members[first].start : members[stop - 1].end]


def _within(match: PathMatch) -> Iterator[DocumentWindow | PathMatch]:
    """Yield the windows of one container and its members that are larger than a window."""
    document, node = match = resolve_embedded(match)
    members = document.members(node.start, node.end)
    first = 0
    while first < len(members):
        # Binary search, because a container may have a member every three characters.
        end = members[first].start + WINDOW
        stop = bisect_right(members, end, first, key=lambda member: member.end)
        if stop == first and _has_parts(document, node, members[first]):
            yield PathMatch(document, _node(node, members[first]))
        else:
            yield _window(match, members, first, max(stop, first + 1))
        first = max(stop, first + 1)


def _window(match: PathMatch, members: Sequence[Member], first: int, stop: int) -> DocumentWindow:
    document, node = match
    try:
        if document.kind(node.start, node.end) != "object":
            run = run_of(document, members, first, stop)
            return DocumentWindow(node.path, first, *run, len(members))
        written = _written(document, members, first, stop)
        return DocumentWindow(node.path, 0, decoder.decode(f"{{{written}}}"), written)
    except UNREADABLE:  # the caller's stack is deeper than when the text was parsed
        written = _written(document, members, first, stop)
        return DocumentWindow(node.path, first, written, written)


def _has_parts(document: Document, node: Node, member: Member) -> bool:
    inner = resolve_embedded(PathMatch(document, _node(node, member)))
    return inner.document.is_container(inner.node.start, inner.node.end)


def _node(parent: Node, member: Member) -> Node:
    return Node(step(parent.path, member.name), member.value, member.end)
