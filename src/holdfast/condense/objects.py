"""Objects of one known shape in a JSON document: their places, and the notes that list them.

A service's condenser declares the shape of its objects, their fields under all names that services
give them, and the line that describes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Note, Passage
from holdfast.condense.json_rows import passages
from holdfast.condense.main_rows import near_top, path_to
from holdfast.condense.pieces import prose_passages
from holdfast.condense.source import Source


class Objects(NamedTuple):
    """Objects of one shape, and the JSON path of each."""

    items: list[dict[str, Any]]
    paths: list[str]


def objects_near_top(
    source: Source, is_one: Callable[[Any], object], *, alone: bool = True
) -> Objects | None:
    """Return the first list near the top that holds only objects of a shape, or a lone object.

    Without `alone`, an object outside of a list does not count.
    """
    for steps, item in near_top(source):
        if isinstance(item, list) and item and all(map(is_one, item)):
            return Objects(item, [path_to((*steps, number)) for number in range(len(item))])
        if alone and is_one(item):
            return Objects([item], [path_to(steps)])
    return None


def first_of(
    item: Mapping[str, Any], names: Iterable[str], accepts: Callable[[Any], object] = bool
) -> Any:
    """Return the first accepted value among several names of one field; None if there is none."""
    return next((item[name] for name in names if name in item and accepts(item[name])), None)


def listing(source: Source, lines: Sequence[tuple[str, str]], most: int, unit: str) -> list[Note]:
    """Return the alerts of a content, and the first lines with their places as samples.

    An outline note has the number of omitted `unit`.
    """
    notes = alerts(source)
    notes += [Note("sample", line, place) for line, place in lines[:most]]
    if len(lines) > most:
        notes.append(Note("outline", f"{len(lines) - most:,} more {unit}"))
    return notes


def passages_with(source: Source, lines: Iterable[tuple[str, str]]) -> Sequence[Passage]:
    """Return descriptions of objects as passages, then all of the document."""
    described = [part for line, place in lines for part in prose_passages(line, place)]
    return [*described, *passages(source)]
