r"""Remove the escapes that hide secrets in a text, and map positions back to the original.

Tool results nest JSON, percent-encoded URLs and HTML entities, so that a token may follow the
letter of `\n` and an email may be written `ann\u0040corp.com`. A run of backslashes counts as one,
whatever its nesting, because an extra word boundary is harmless here and a missing one is not.
Base64, look-alike characters and secrets split over several blocks are not detected.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import accumulate, pairwise
from typing import NamedTuple

_ROUNDS = 3
r"""Rounds of unescaping: escapes may be nested (`\\u005cu0040`, `%2540`); deeper nesting was never
seen.
"""
_ENTITIES = {
    b"amp": b"&", b"apos": b"'", b"colon": b":", b"commat": b"@", b"equals": b"=", b"gt": b">",
    b"lt": b"<", b"period": b".", b"quot": b'"', b"sol": b"/",
}  # fmt: skip
# Linear: the only unbounded repeat is possessive, and no two alternatives share a first character.
_ESCAPE = re.compile(
    rb"\\++(?:u([0-9a-fA-F]{4})|([nrtbf\"'`/]))?"
    rb"|%([0-9a-fA-F]{2})"
    rb"|&#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}));"
    rb"|&(" + b"|".join(_ENTITIES) + rb");"
)
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b" ", b"f": b" "}
"""Replacements of escape letters; quotes and slashes stay. Other backslashes separate words."""


class UnescapedText(NamedTuple):
    """A text without escapes, with a map to the original offsets."""

    data: bytes
    ends: list[int]
    """End offset of each replacement."""
    shifts: list[int]
    """Offset difference to the original after each replacement."""

    def written(self, place: int) -> int:
        """Return the original offset of an offset in `data`."""
        before = bisect.bisect_right(self.ends, place)
        return place + (self.shifts[before - 1] if before else 0)


def plain_forms(data: bytes) -> Iterator[UnescapedText]:
    """Yield a text after each round of unescaping, until a round changes nothing.

    Offsets refer to the previous form; those of the first form refer to the text itself.
    """
    for _ in range(_ROUNDS):
        if not (b"\\" in data or b"%" in data or b"&" in data):
            return
        plain = _unescape(data)
        if plain is None:
            return
        yield plain
        data = plain.data


def unescaped_forms(data: bytes) -> Iterator[bytes]:
    """Yield bytes as written and after each round of unescaping, without offsets.

    A fold may hold 20 MB, so only one form at a time is in memory, without a list of its escapes.
    """
    yield data
    for _ in range(_ROUNDS):
        if not (b"\\" in data or b"%" in data or b"&" in data):
            return
        plain = BytesIO()
        for start, stop in pairwise(_cuts(data)):
            plain.write(_ESCAPE.sub(_sign, data[start:stop]))
        reading = plain.getvalue()
        if reading == data:
            return
        data = reading
        yield data


def _cuts(data: bytes) -> Iterator[int]:
    """Yield offsets that split bytes into pieces without splitting an escape."""
    at = 0
    while at < len(data):
        yield at
        gap = _CLEAN.search(data, at + _PIECE)
        at = len(data) if gap is None else gap.end()
    yield len(data)


_PIECE = 262_144
_CLEAN = re.compile(rb"[^\\%&]{12}")
"""Longer than the rest of any escape after its first character."""


def _unescape(data: bytes) -> UnescapedText | None:
    pieces: list[bytes] = []
    ends: list[int] = []
    lengths: list[int] = []
    at = length = 0
    for escape in _ESCAPE.finditer(data):
        start, stop = escape.span()
        sign = _sign(escape)
        if sign == escape[0]:
            continue
        pieces += data[at:start], sign
        length += start - at + len(sign)
        ends.append(length)
        lengths.append(stop - start - len(sign))
        at = stop
    if not ends:
        return None
    pieces.append(data[at:])
    return UnescapedText(b"".join(pieces), ends, list(accumulate(lengths)))


def _sign(escape: re.Match[bytes]) -> bytes:
    """Return the replacement of an escape, never empty, so that following offsets stay distinct."""
    code, letter, percent, hexadecimal, decimal, entity = escape.groups()
    if letter:
        return _SIGNS.get(letter, letter)
    if entity:
        return _ENTITIES[entity]
    if percent:
        return bytes([int(percent, 16)])
    if code or hexadecimal or decimal:
        number = int(decimal) if decimal else int(code or hexadecimal, 16)
        is_sign = number < 0x110000 and not 0xD800 <= number < 0xE000
        return chr(number).encode() if is_sign else b" "
    return b"\\"
