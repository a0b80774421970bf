"""Structured results made shorter, so that they still are what their schema says.

structured: before results; pure, and it knows no protocol. Large texts inside a value give way to a
line that says how to open them, and long lists keep their first items, if the object around them
has room for a field that says so. Nothing else is touched: a value that cannot say what it lacks is
left whole. Whatever is done is checked against the schema, and undone where the schema forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from holdfast.cite import count
from holdfast.quoting import in_one_line

OMITTED = "holdfast_omitted"
"""The field beside a list that was cut: which list, how many items it has, and what opens them."""

_LONG_TEXT = 400
"""Characters from which a text inside a value may give way: less would not pay for the line."""
_FIRST_ITEMS = 3
_MOST_CUTS = 64
"""Each may have to be tried alone, and each try checks the whole value."""
_DEEPEST = 64
_HEAD = 80


class Cut(NamedTuple):
    """Something that could give way in a value."""

    path: tuple[str | int, ...]
    size: int
    """Characters of JSON that it would save."""


class Shortened(NamedTuple):
    """A value that lacks something, and where."""

    value: Any
    paths: tuple[str, ...]
    """As JSON paths, the largest first."""


Check = Callable[[Any], bool]


def checker(schema: Any) -> Check | None:
    """Whether values are what a schema says; None if the schema itself is none.

    jsonschema-rs takes linear time for patterns, and fetches nothing from elsewhere.
    """
    if schema is None:
        return lambda _: True
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (ValueError, TypeError, RecursionError, jsonschema_rs.ReferencingError):
        return None
    return lambda value: bool(validator.is_valid(value))


def shorten(value: Any, schema: Any, ref: str, opener: str, most_characters: int) -> Shortened:
    """A value with its largest parts behind a ref, until it is short enough or nothing is left.

    `ref` opens the whole value: each part is found in it by its path.
    """
    whole = Shortened(value, ())
    is_valid = checker(schema)
    if is_valid is None or not is_valid(value):
        return whole  # what its own server got wrong is not for us to mend
    too_much = len(msgspec.json.encode(value)) - most_characters
    chosen: list[Cut] = []
    for cut in sorted(_cuts(value, (), 0), key=lambda cut: -cut.size):
        if too_much <= 0 or len(chosen) >= _MOST_CUTS:
            break
        if not any(_inside(cut.path, other.path) for other in chosen):
            chosen.append(cut)
            too_much -= cut.size
    attempt = _applied(value, chosen, ref, opener)
    if not is_valid(attempt):
        chosen = [cut for cut in chosen if is_valid(_applied(value, [cut], ref, opener))]
        attempt = _applied(value, chosen, ref, opener)
    if not chosen or not is_valid(attempt):
        return whole
    return Shortened(attempt, tuple(json_path(cut.path) for cut in chosen))


def json_path(path: tuple[str | int, ...]) -> str:
    """A place as `expand_ref` takes it."""
    steps = (
        f"[{step}]"
        if isinstance(step, int)
        else (f".{step}" if step.isidentifier() else f"[{msgspec.json.encode(step).decode()}]")
        for step in path
    )
    return "$" + "".join(steps)


def _cuts(value: Any, path: tuple[str | int, ...], depth: int) -> Iterator[Cut]:
    """All that could give way: long texts, and lists in objects."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if len(value) > _LONG_TEXT:
            yield Cut(path, len(value))
    elif isinstance(value, dict):
        for key, child in value.items():
            if isinstance(child, list) and len(child) > _FIRST_ITEMS and OMITTED not in value:
                rest = len(msgspec.json.encode(child[_FIRST_ITEMS:]))
                if rest > _LONG_TEXT:
                    yield Cut((*path, key), rest)
            yield from _cuts(child, (*path, key), depth + 1)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _cuts(child, (*path, index), depth + 1)


def _inside(path: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    """Whether one place is within another, or is it."""
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _applied(value: Any, cuts: list[Cut], ref: str, opener: str) -> Any:
    """The value with all these cuts; what is not cut is shared with it."""
    for cut in cuts:
        value = _with(value, cut.path, cut.path, ref, opener)
    return value


def _with(
    value: Any, path: tuple[str | int, ...], whole: tuple[str | int, ...], ref: str, opener: str
) -> Any:
    if not path:
        return _line(value, whole, ref, opener)
    step, rest = path[0], path[1:]
    child = value[step]
    if isinstance(value, list):
        at = int(step)
        return [*value[:at], _with(child, rest, whole, ref, opener), *value[at + 1 :]]
    if rest or not isinstance(child, list):
        return {**value, step: _with(child, rest, whole, ref, opener)}
    note = {"items": len(child), "shown": _FIRST_ITEMS, "ref": ref, "find": json_path(whole)}
    omitted = {**value.get(OMITTED, {}), step: note}
    return {**value, step: child[:_FIRST_ITEMS], OMITTED: omitted}


def _line(text: str, path: tuple[str | int, ...], ref: str, opener: str) -> str:
    """What stands in the place of a text: how it begins, how long it is, and what opens it."""
    head = in_one_line(text[:_HEAD])
    way = msgspec.json.encode({"ref": ref, "find": json_path(path)}).decode()
    return f"{head}… [{count(text):,} tokens, opened by {opener} {way}]"


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri[:40]}")
