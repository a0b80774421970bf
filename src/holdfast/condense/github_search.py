"""GitHub searches: the number of results, the first ten, and the number of the others.

Handles repositories, issues, code, commits, users and topics, in the format of GitHub's API and in
the shorter formats of tools that wrap it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note
from holdfast.condense.json_rows import passages
from holdfast.condense.main_rows import main_rows, near_top, path_to
from holdfast.condense.pieces import scalar
from holdfast.condense.rows import brief
from holdfast.condense.source import Source, once

_API = "https://api.github.com"
_SITE = "https://github.com/"
_TITLE_CHARS = 100
_UNITS = {
    "pull requests": {"number", "title", "head", "base"},
    "issues": {"number", "title"},
    "commits": {"sha", "commit"},
    "repositories": {"full_name"},
    "workflow runs": {"run_number", "workflow_id"},
    "events": {"actor", "payload"},
    "files": {"path", "repository"},
    "comments": {"body", "user"},
    "users": {"login"},
}
"""What things are called, by the keys that all of their kind have."""


@once
def is_github(source: Source) -> bool:
    """Whether the things in a document, or what wraps them, come from GitHub."""
    if b"github" not in source.data and b"GitHub" not in source.data:
        return False
    rows = main_rows(source)
    items = rows.rows[:3] if rows else []
    return any(_is_thing(candidate) for candidate in items) or any(
        _is_thing(item) for _, item in near_top(source)[:12] if isinstance(item, dict)
    )


def _is_thing(item: dict[str, Any]) -> bool:
    if str(item.get("server_name")).lower() == "github":
        return True
    return any(_tells(key, value) for key, value in _fields(item))


def _fields(item: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The scalars of a thing and of the objects right under it."""
    for key, value in item.items():
        if isinstance(value, dict):
            yield from value.items()
        else:
            yield key, value


def _tells(key: str, value: Any) -> bool:
    if key.startswith("github_com_"):
        return True
    if type(value) is not str:
        return False
    return value.startswith(_API) or (key == "html_url" and value.startswith(_SITE))


def unit_of(items: list[Any]) -> str:
    """Return the name for the items of a list, derived from the first of them."""
    keys = items[0].keys() if items and isinstance(items[0], dict) else set()
    return next((unit for unit, required in _UNITS.items() if required <= keys), "items")


def thing(item: dict[str, Any]) -> str:
    """Return a repository, issue, commit, file or other object in one line, ids and links exact."""
    if "full_name" in item:
        return _joined(item, ["full_name", "html_url|url", "stars", "date", "description"])
    if "number" in item and "title" in item:
        return _joined(item, ["#number", "title", "state", "by", "date", "html_url|url"])
    if "sha" in item and isinstance(item.get("commit"), dict):
        return _commit(item)
    if "path" in item and "repository" in item:
        return _joined(item, ["path", "repository", "html_url|url"])
    return brief(item)


def _joined(item: dict[str, Any], wanted: list[str]) -> str:
    texts = [_part(item, name) for name in wanted]
    return ", ".join(text for text in texts if text)


def _part(item: dict[str, Any], name: str) -> str:
    if name == "stars":
        stars = item.get("stargazers_count", item.get("stars"))
        return "" if stars is None else f"stars {scalar(stars)}"
    if name == "date":
        return _day(item)
    if name == "by":
        return _login(item.get("user") or item.get("author"))
    if name == "#number":
        return f"#{item['number']}"
    if name == "repository":
        holder = item["repository"]
        return scalar(holder.get("full_name", "")) if isinstance(holder, dict) else ""
    value = next((item[key] for key in name.split("|") if isinstance(item.get(key), str)), "")
    return brief(value, limit=_TITLE_CHARS) if name in ("title", "description") else value


def _day(item: dict[str, Any]) -> str:
    """Return the date of the last change."""
    for key in ("pushed_at", "updated_at", "created_at", "date"):
        value = item.get(key)
        if type(value) is str:
            return value[:10]
    return ""


def _login(user: Any) -> str:
    name = user.get("login") or user.get("name") if isinstance(user, dict) else user
    return f"by {name}" if type(name) is str else ""


def _commit(item: dict[str, Any]) -> str:
    commit = item["commit"]
    author = commit.get("author") if isinstance(commit.get("author"), dict) else {}
    message = scalar(commit.get("message") or "").partition("\n")[0]
    parts = [
        scalar(item["sha"]) if type(item["sha"]) is str else "",
        brief(message, limit=_TITLE_CHARS),
        _login(item.get("author")) or _login(author),
        _day(author),
    ]
    return ", ".join(part for part in parts if part)


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
    search = _search(source)
    return 0.95 if search and (search.incomplete or is_github(source)) else 0.0


def condense(source: Source) -> Condensed:
    """Count the results, and show the first ten."""
    search = _search(source)
    document = source.document
    if search is None or document is None:
        return Condensed(title="GitHub search, unreadable", unit="items", total=0, notes=())
    unit = unit_of(search.items)
    present = len(search.items)
    notes = alerts(source)
    if search.incomplete:
        notes.append(Note("alert", "incomplete_results: true", path_to(())))
    notes += [
        Note("sample", f"{number}. {thing(item)}", f"{search.path}[{number - 1}]")
        for number, item in enumerate(search.items[:_TOP], 1)
        if isinstance(item, dict)
    ]
    if present > _TOP:
        remaining_rows = f"rows {_TOP + 1}-{present} of {search.path}"
        notes.append(Note("outline", f"{present - _TOP:,} more {unit} here", remaining_rows))
    if search.count > present:
        notes.append(Note("outline", f"{search.count - present:,} more {unit} not in this answer"))
    return Condensed(
        title=f"GitHub search: {search.count:,} {unit} found, {present:,} here",
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
