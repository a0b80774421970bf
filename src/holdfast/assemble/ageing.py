"""What was said lately, shorter as it ages: whole, then its two ends, then one line (004-40).

ageing: after header. Ages are counted in pairs of question and answer, so that both age together
(C20). What tells of an error or warns of something about security stays whole at any age, and no
cut runs through an id, a number or a URL (C45).
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.quoting import in_one_line
from holdfast.summarise.fidelity import Rung
from holdfast.trim.excerpts import before, error_line, middle_cut, security_line

INTACT = 2
"""Pairs younger than this stay whole."""
CUT = 5
"""Pairs younger than this are cut in the middle; older ones are a line."""
CUT_CHARACTERS = 300
LINE_CHARACTERS = 120
_LEAST_CUT = 120
"""Characters; to cut less than this out of a text is not worth the mark it leaves."""
_LONGEST_WARNING = 1_000
"""Characters; what is longer is a text that mentions a warning."""


class Aged(NamedTuple):
    """A text as it is shown at some age."""

    text: str
    level: Rung


def aged(text: str, age: int) -> Aged:
    """A text as it is shown so many pairs later."""
    if age < INTACT:
        return Aged(text, Rung.RAW)
    return cut(text) if age < CUT else line(text)


def cut(text: str, most: int = CUT_CHARACTERS) -> Aged:
    """The two ends of a text; all of it if that is not much more."""
    if len(text) <= most + _LEAST_CUT or _is_protected(text):
        return Aged(text, Rung.RAW)
    return Aged(middle_cut(text, most), Rung.TRUNCATED)


def line(text: str) -> Aged:
    """The beginning of a text in one line."""
    if len(text) <= LINE_CHARACTERS or _is_protected(text):
        return Aged(text, Rung.RAW)
    flat = in_one_line(text)
    shown = before(flat, LINE_CHARACTERS).rstrip()
    # A first word that is longer than the line, such as a key, would leave nothing.
    return Aged(f"{shown or flat[:LINE_CHARACTERS]} …", Rung.HEADLINE)


def _is_protected(text: str) -> bool:
    """Whether a text is nothing but an error or a warning, which is never made shorter."""
    if len(text) > _LONGEST_WARNING:
        return False
    return bool(error_line(text)) or bool(security_line(text.encode("utf-8", "replace")))
