"""Compress older history: the newest pairs in full, then both ends of a text, then one line.

Ages are counted in pairs of question and answer, so that both age together. An error or a security
warning is kept in full at any age, and no cut splits an id, a number or a URL.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.quoting import in_one_line
from holdfast.summarise.fidelity import Rung
from holdfast.trim.excerpts import before, error_line, middle_cut, security_line

INTACT = 2
"""Pairs younger than this are kept in full."""
CUT = 5
"""Pairs younger than this are cut in the middle; older ones become one line."""
CUT_CHARACTERS = 300
LINE_CHARACTERS = 120
_LEAST_CUT = 120
"""Minimum characters to cut: less is not worth the mark that a cut leaves."""
_LONGEST_WARNING = 1_000
"""Maximum characters of a warning; a longer text only mentions one."""


class CompressedText(NamedTuple):
    """A text as shown at its age."""

    text: str
    level: Rung


def compress(text: str, age: int) -> CompressedText:
    """Return a text as shown when it is `age` pairs old."""
    if age < INTACT:
        return CompressedText(text, Rung.RAW)
    return cut_middle(text) if age < CUT else headline(text)


def cut_middle(text: str, most: int = CUT_CHARACTERS) -> CompressedText:
    """Return the two ends of a text, or all of it if it is not much longer."""
    if len(text) <= most + _LEAST_CUT or _is_protected(text):
        return CompressedText(text, Rung.RAW)
    return CompressedText(middle_cut(text, most), Rung.TRUNCATED)


def headline(text: str) -> CompressedText:
    """Return the beginning of a text in one line."""
    if len(text) <= LINE_CHARACTERS or _is_protected(text):
        return CompressedText(text, Rung.RAW)
    flat = in_one_line(text)
    beginning = before(flat, LINE_CHARACTERS).rstrip()
    # A first word longer than the line, such as a key, would leave nothing.
    return CompressedText(f"{beginning or flat[:LINE_CHARACTERS]} …", Rung.HEADLINE)


def _is_protected(text: str) -> bool:
    """Return whether a text is an error or a warning, which is never shortened."""
    if len(text) > _LONGEST_WARNING:
        return False
    return bool(error_line(text)) or bool(security_line(text.encode("utf-8", "replace")))
