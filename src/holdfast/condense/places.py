"""Places as citations and pages name them: each path once, one line as `line 105`.

places: after condenser. Pure text. Every place it returns is one that `expand_ref` opens.
"""

from __future__ import annotations

from holdfast.condense.condenser import Passage

_UNITS = ("lines", "rows")


def short_place(where: str) -> str:
    """Return a place with a range of one as a single number: `line 105`, `row 3 of $.items`."""
    unit, _, numbers = where.partition(" ")
    span, space, array = numbers.partition(" ")
    first, dash, last = span.partition("-")
    if unit in _UNITS and dash and first == last:
        return f"{unit[:-1]} {first}{space}{array}"
    return where


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
