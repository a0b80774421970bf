"""Shorten structured results so that they still match their schema.

Large texts inside a value are replaced by a line that says how to open them. Long lists keep their
first items, if the object around them can have a field for the rest. Every change is checked
against the schema and undone if the schema forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from holdfast.cite import count
from holdfast.quoting import in_one_line

OMITTED = "holdfast_omitted"
"""Field for a list that was cut: its name, number of items, and the ref that opens them."""

_LONG_TEXT = 400
"""Minimum characters of a text that is replaced; for less, the line costs as much."""
_FIRST_ITEMS = 3
_MOST_CUTS = 64
"""Each may have to be tried alone, and each try validates the whole value."""
_DEEPEST = 64
_HEAD = 80


class ValueCut(NamedTuple):
    """A part of a value that can be replaced."""

    path: tuple[str | int, ...]
    size: int
    """Characters of JSON that it saves."""


class ShorterValue(NamedTuple):
    """A shortened value and its cuts."""

    value: Any
    paths: tuple[str, ...]
    """JSON paths of the cuts, largest first."""


Check = Callable[[Any], bool]


def checker(schema: Any) -> Check | None:
    """Return a function that validates values against a schema; None if the schema is invalid.

    jsonschema-rs matches patterns in linear time and fetches no references.
    """
    if schema is None:
        return lambda _: True
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (ValueError, TypeError, RecursionError, jsonschema_rs.ReferencingError):
        return None
    return lambda value: bool(validator.is_valid(value))


def shorten(value: Any, schema: Any, ref: str, opener: str, most_characters: int) -> ShorterValue:
    """Replace the largest parts of a value by a ref, until it is short enough or no cut is left.

    `ref` opens the whole value; each part is found in it by its path.
    """
    unchanged = ShorterValue(value, ())
    is_valid = checker(schema)
    if is_valid is None or not is_valid(value):
        return unchanged  # an invalid value is the server's own error
    too_much = len(msgspec.json.encode(value)) - most_characters
    chosen: list[ValueCut] = []
    for cut in sorted(_cuts(value, (), 0), key=lambda cut: -cut.size):
        if too_much <= 0 or len(chosen) >= _MOST_CUTS:
            break
        if not any(_inside(cut.path, chosen_cut.path) for chosen_cut in chosen):
            chosen.append(cut)
            too_much -= cut.size
    attempt = _apply(value, chosen, ref, opener)
    if not is_valid(attempt):
        chosen = [cut for cut in chosen if is_valid(_apply(value, [cut], ref, opener))]
        attempt = _apply(value, chosen, ref, opener)
    if not chosen or not is_valid(attempt):
        return unchanged
    return ShorterValue(attempt, tuple(json_path(cut.path) for cut in chosen))


def json_path(path: tuple[str | int, ...]) -> str:
    """Return a place as `expand_ref` takes it."""
    steps = (
        f"[{step}]"
        if isinstance(step, int)
        else (f".{step}" if step.isidentifier() else f"[{msgspec.json.encode(step).decode()}]")
        for step in path
    )
    return "$" + "".join(steps)


def _cuts(value: Any, path: tuple[str | int, ...], depth: int) -> Iterator[ValueCut]:
    """Yield all possible cuts: long texts, and lists in objects."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if len(value) > _LONG_TEXT:
            yield ValueCut(path, len(value))
    elif isinstance(value, dict):
        for key, child in value.items():
            if isinstance(child, list) and len(child) > _FIRST_ITEMS and OMITTED not in value:
                size = len(msgspec.json.encode(child[_FIRST_ITEMS:]))
                if size > _LONG_TEXT:
                    yield ValueCut((*path, key), size)
            yield from _cuts(child, (*path, key), depth + 1)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _cuts(child, (*path, index), depth + 1)


def _inside(path: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    """Return whether one place is inside another or equal to it."""
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _apply(value: Any, cuts: list[ValueCut], ref: str, opener: str) -> Any:
    """Return the value with all these cuts; unchanged parts are shared."""
    for cut in cuts:
        value = _replace_at(value, cut.path, cut.path, ref, opener)
    return value


def _replace_at(
    value: Any, path: tuple[str | int, ...], whole: tuple[str | int, ...], ref: str, opener: str
) -> Any:
    if not path:
        return _opening_line(value, whole, ref, opener)
    step, remaining_path = path[0], path[1:]
    child = value[step]
    if isinstance(value, list):
        at = int(step)
        return [
            *value[:at],
            _replace_at(child, remaining_path, whole, ref, opener),
            *value[at + 1 :],
        ]
    if remaining_path or not isinstance(child, list):
        return {**value, step: _replace_at(child, remaining_path, whole, ref, opener)}
    note = {"items": len(child), "shown": _FIRST_ITEMS, "ref": ref, "find": json_path(whole)}
    omitted = {**value.get(OMITTED, {}), step: note}
    return {**value, step: child[:_FIRST_ITEMS], OMITTED: omitted}


def _opening_line(text: str, path: tuple[str | int, ...], ref: str, opener: str) -> str:
    """Return the line that replaces a text: its beginning, its length and how to open it."""
    head = in_one_line(text[:_HEAD])
    way = msgspec.json.encode({"ref": ref, "find": json_path(path)}).decode()
    return f"{head}… [{count(text):,} tokens, opened by {opener} {way}]"


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri[:40]}")
