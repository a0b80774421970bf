"""Whether a JSON text holds so many small values that they are not all held at once.

density: after json_text. Python takes 56 bytes for `[]` and 200 for `{"a":1}`: a megabyte of them
takes forty times its room, whatever is then said of it. Of such a text the beginning is decoded
here; the rest is read in `windows`, a part at a time.
"""

from __future__ import annotations

import re
from typing import Any

from holdfast.document.json_text import SIGNS, decoder

LARGE = 200_000
"""Characters of which all values are always held: at sixty times their size, twelve megabytes."""
HEAD = 16_000
"""Characters of a dense text whose values are held."""
_LONG = 100
"""Strings of more characters are looked into for signs that part no values: prose, a table."""

# Both are linear: a string that is never closed is one match to the end of the text.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_CLOSING = {"[": "]", "{": "}"}


def is_dense(text: str, start: int, end: int) -> bool:
    """Whether the JSON in this span is long, and holds a value in every few characters."""
    size = end - start
    if size <= LARGE or _signs(text, start, end) <= size // SIGNS:
        return False
    quoted = sum(
        _signs(text, *string.span())
        for string in _STRING.finditer(text, start, end)
        if string.end() - string.start() > _LONG
    )
    return _signs(text, start, end) - quoted > size // SIGNS


def _signs(text: str, start: int, end: int) -> int:
    return sum(text.count(sign, start, end) for sign in ",[{")


def head_of(text: str, start: int, end: int) -> Any:
    """The values that a dense text begins with: cut behind a member, and closed."""
    opened: list[str] = []
    cut, closing = start + 1, _CLOSING[text[start]]
    for token in _TOKEN.finditer(text, start, end):
        sign = token[0]
        if sign in _CLOSING:
            opened.append(_CLOSING[sign])
        elif sign == ",":
            if token.start() - start > HEAD:
                break
            cut, closing = token.start(), "".join(reversed(opened))
        elif opened and sign == opened[-1]:
            opened.pop()
    return decoder.decode(text[start:cut] + closing)
