"""Places as citations and pages name them: each path once, one line as `line 105`.

places: after condenser. Pure text. Every place it returns is one that `expand_ref` opens.
"""

from __future__ import annotations

from holdfast.condense.condenser import Passage

_UNITS = ("lines", "rows")
_RANGES = (*_UNITS, "keys", "paragraphs", "matches")
"""Units whose ranges include both numbers; a range of characters has an end outside of it."""
_IRREGULAR = {"matches": "match", "entities": "entity"}


def short_place(where: str) -> str:
    """Return a place with a range of one as a single number: `line 105`, `row 3 of $.items`."""
    unit, _, numbers = where.partition(" ")
    span, space, array = numbers.partition(" ")
    first, dash, last = span.partition("-")
    if unit in _RANGES and dash and first == last:
        return f"{_singular(unit)} {first}{space}{array}"
    return where


def with_unit(number: int, unit: str) -> str:
    """Return a number with its unit, given in the plural: `1 line`, `2,000 lines`."""
    return f"{number:,} {_singular(unit) if number == 1 else unit}"


def _singular(unit: str) -> str:
    return _IRREGULAR.get(unit) or unit.removesuffix("s")


def labelled(text: str, where: str) -> str:
    """Return a quoted text with its place: a path before it, line numbers after it.

    Asked "Which line says …?", a model of 1.5 billion parameters answered with the place `line 27`
    when that came first.
    """
    place = short_place(where)
    if place.partition(" ")[0] in ("line", "lines"):
        return f"{text} ({place})"
    return f"{place}: {text}" if place else text


def lies_within(inner: str, outer: str) -> bool:
    """Return whether one place is another, or a range of lines or rows inside it."""
    if inner == outer:
        return True
    inner_span, outer_span = _span(inner), _span(outer)
    if inner_span is None or outer_span is None or inner_span[0] != outer_span[0]:
        return False
    return outer_span[1] <= inner_span[1] and inner_span[2] <= outer_span[2]


def _span(where: str) -> tuple[str, int, int] | None:
    """Return the unit of a range, and its first and last number."""
    unit, _, numbers = where.partition(" ")
    span, _, array = numbers.partition(" ")
    first, _, last = span.partition("-")
    unit = unit if unit.endswith("s") else f"{unit}s"
    is_span = unit in _UNITS and first.isdecimal() and (not last or last.isdecimal())
    return (f"{unit} {array}", int(first), int(last or first)) if is_span else None


def without_path(passage: Passage) -> str:
    """Return the text of a passage without the path that its place names already.

    Passages of JSON begin with their path, so that its keys count in the ranking. A passage of one
    field begins with the path of its object. The name of the object around it, in brackets, stays
    unless the text has it too.
    """
    path = passage.where.partition(" of ")[2] if passage.where[:1] != "$" else passage.where
    text = passage.text
    if not path.startswith("$"):
        return text
    parent = path[: max(path.rfind("."), path.rfind("["))]
    for prefix in (path, parent):
        behind = text[len(prefix) :]
        if prefix and text.startswith(prefix) and behind.startswith((": ", " (")):
            break
    else:
        return text
    fields = behind[2:]
    if behind.startswith(" ("):
        label, colon, fields = fields.partition("): ")
        if not colon:
            return text
        fields = fields if label in fields else f"({label}) {fields}"
    key = path[len(parent) + 1 :] if prefix == parent else ""
    return fields.removeprefix(f"{key}: ") if key else fields
