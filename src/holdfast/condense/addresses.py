"""The values of a JSON document that a question names by their path.

Finds `data.agent.agentArn`, `items[3].name`, `$.a["b c"]`, `/a/0` and a single quoted key in a
question, and follows them through the document: from the root, else from any object, else without
their first steps. Keys may contain dots and slashes.

The patterns use `re`, because they run on a question and on paths of at most 300 characters in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from holdfast.condense.pieces import Place

_MOST_PATHS = 4
MOST_FOUND = 3
"""A path that leads to more values than this names none of them."""
_MOST_DROPPED = 6
_MOST_TRIED = 2_000
_MOST_CHARS = 300
_MOST_ENDS = 24
"""As many dots and slashes a key may hold: each is tried as its end, at every value on the way."""

_QUOTED = re.compile(r"`([^`\n]{1,300})`|\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'")
_WRITTEN = re.compile(r"[$\w@\[/](?:[^\s`\"',;?!()]|\[\"[^\"\n]*\"\]|\['[^'\n]*'\])*")
_INDEX = re.compile(r"\.?\[(\d{1,9})\]|[./]?(\d{1,9})(?![^./\[])")
_BRACKET = re.compile(r"\.?\[(?:\"([^\"]*)\"|'([^']*)')\]")
_STEP_END = re.compile(r"[./\[]|$")


def addressed(value: Any, question: str) -> list[Place]:
    """Return the places of the values that the question names, in the question's order."""
    places: dict[int, Place] = {}
    for path in paths_in(question):
        for place in _resolved(value, path):
            places.setdefault(hash(_steps(place)), place)
    return list(places.values())


def _steps(place: Place) -> tuple[Any, ...]:
    steps = []
    while place:
        place, step, _ = place
        steps.append(step)
    return tuple(steps)


def paths_in(question: str) -> list[str]:
    """What looks like a path, or like a key in quotes."""
    quoted = [next(filter(None, match)) for match in _QUOTED.findall(question)]
    unquoted = _QUOTED.sub(" ", question)
    written = [word for word in _WRITTEN.findall(unquoted) if re.search(r"[.\[/][\w@$]", word)]
    paths = [path.strip().rstrip(".:") for path in (*quoted, *written) if len(path) <= _MOST_CHARS]
    return list(dict.fromkeys(filter(None, paths)))[:_MOST_PATHS]


def _resolved(value: Any, path: str) -> list[Place]:
    remaining = path.removeprefix("$").lstrip("./")
    is_key = re.search(r"[.\[/]", remaining) is None
    for _ in range(_MOST_DROPPED):
        if not remaining:
            break
        if top := _follow(value, remaining, ()):
            return [top]
        if not is_key and (anywhere := _anywhere(value, remaining)):
            return anywhere if len(anywhere) <= MOST_FOUND else []
        cut = _STEP_END.search(remaining, 1)
        remaining = remaining[
            cut.end() if cut and cut[0] != "[" else cut.start() if cut else len(remaining) :
        ]
        if re.search(r"[.\[/]", remaining) is None:
            break  # a last key alone is too ambiguous
    return []


def _anywhere(value: Any, path: str) -> list[Place]:
    places: list[Place] = []
    for tried, (place, node) in enumerate(_containers(value)):
        if tried > _MOST_TRIED or len(places) > MOST_FOUND:
            break
        if place and (hit := _follow(node, path, place)):
            places.append(hit)
    return places


def _containers(value: Any) -> Iterator[tuple[Place, Any]]:
    """Every object and array, level by level."""
    waiting: list[tuple[Place, Any]] = [((), value)]
    for place, node in waiting:  # grows while it is read: level by level
        if not isinstance(node, (dict, list)):
            continue
        yield place, node
        steps = node.items() if isinstance(node, dict) else enumerate(node)
        inner = (
            ((place, step, node), child)
            for step, child in steps
            if child and isinstance(child, (dict, list))
        )
        # No more than are tried: an array may hold a hundred thousand.
        waiting.extend(islice(inner, max(0, _MOST_TRIED + 2 - len(waiting))))


def _follow(node: Any, path: str, place: Place) -> Place:
    """The place that a path leads to from here; () if it breaks off."""
    while path:
        stepped = _step(node, path)
        if stepped is None:
            return ()
        step, length = stepped
        place = (place, step, node)
        node, path = node[step], path[length:]
    return place


def _step(node: Any, path: str) -> tuple[Any, int] | None:
    """The next step that a node allows, and how much of the path it takes."""
    if isinstance(node, list):
        index = _INDEX.match(path)
        number = int(index[1] or index[2]) if index else len(node)
        return (number, index.end()) if index and number < len(node) else None
    if not isinstance(node, dict):
        return None
    if bracket := _BRACKET.match(path):
        key = bracket[1] if bracket[1] is not None else bracket[2]
        return (key, bracket.end()) if key in node else None
    begin = 1 if path[0] in "./" else 0
    end_matches = islice(_STEP_END.finditer(path, begin + 1), _MOST_ENDS)
    ends = [match.start() for match in end_matches]
    # A key may hold dots: the longest that is there.
    longest = next((end for end in reversed(ends) if path[begin:end] in node), None)
    return None if longest is None else (path[begin:longest], longest)
