"""GitHub searches: how many were found, the first ten, and how many more there are.

github_search: after github. Repositories, issues, code, commits, users and topics alike.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.github import is_github, thing, unit_of
from holdfast.condense.json_rows import passages
from holdfast.condense.main_rows import near_top, path_to
from holdfast.condense.source import Source

__all__ = ["condense", "kind", "passages", "sniff"]

kind = "github_search"

_TOP = 10


class _SearchAnswer(msgspec.Struct, frozen=True):
    path: str
    count: int
    items: list[Any]
    incomplete: bool


def sniff(source: Source) -> float:
    """Sure of a total with items that are GitHub's."""
    found = _search(source)
    return 0.95 if found and (found.incomplete or is_github(source)) else 0.0


def condense(source: Source) -> Condensed:
    """Count what was found, and show the first ten."""
    search = _search(source)
    document = source.document
    if search is None or document is None:
        return Condensed(title="GitHub search, unreadable", unit="items", total=0, notes=())
    unit = unit_of(search.items)
    here = len(search.items)
    notes = alerts(source)
    if search.incomplete:
        notes.append(Note("alert", "incomplete_results: true", path_to(())))
    notes += [
        Note("sample", f"{number}. {thing(item)}", f"{search.path}[{number - 1}]")
        for number, item in enumerate(search.items[:_TOP], 1)
        if isinstance(item, dict)
    ]
    if here > _TOP:
        rest = f"rows {_TOP + 1}-{here} of {search.path}"
        notes.append(Note("outline", f"{here - _TOP:,} more {unit} here", rest))
    if search.count > here:
        notes.append(Note("outline", f"{search.count - here:,} more {unit} not in this answer"))
    return Condensed(
        title=f"GitHub search: {search.count:,} {unit} found, {here:,} here",
        unit=unit,
        total=search.count,
        notes=tuple(notes),
    )


def _search(source: Source) -> _SearchAnswer | None:
    if b"total_count" not in source.data:
        return None
    for steps, item in near_top(source):
        if not isinstance(item, dict):
            continue
        count, items = item.get("total_count"), item.get("items", item.get("repositories"))
        if type(count) is int and isinstance(items, list):
            key = "items" if "items" in item else "repositories"
            incomplete = item.get("incomplete_results") is True
            return _SearchAnswer(path_to((*steps, key)), count, items, incomplete)
    return None
