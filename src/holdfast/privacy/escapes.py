r"""A text without the escapes that hide what it says, and where each of its signs was written.

escapes: after detector, before detectors; it knows no kind. Tools answer with JSON, often inside
JSON, with addresses that are percent-encoded and with entities of HTML: a token at the start of
a line then stands behind the letter of a `\n`, an address is written `ann\u0040corp.com`, and no
detector sees them. So a text is also looked at as it reads. Too many boundaries do no harm there,
too few would: a run of backslashes, however many levels of JSON made it, counts as one. Out of
reach are base64 and other encodings of whole texts, signs that look like others, and a secret
that is split over several parts of a message.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import accumulate, pairwise
from typing import NamedTuple

_ROUNDS = 3
"""An escape may be written with escapes: `\\u005cu0040`, `%2540`; deeper ones are not met."""
_ENTITIES = {
    b"amp": b"&", b"apos": b"'", b"colon": b":", b"commat": b"@", b"equals": b"=", b"gt": b">",
    b"lt": b"<", b"period": b".", b"quot": b'"', b"sol": b"/",
}  # fmt: skip
# Linear: the only repeat without a bound is possessive, and no alternative begins as another does.
_ESCAPE = re.compile(
    rb"\\++(?:u([0-9a-fA-F]{4})|([nrtbf\"'`/]))?"
    rb"|%([0-9a-fA-F]{2})"
    rb"|&#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}));"
    rb"|&(" + b"|".join(_ENTITIES) + rb");"
)
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b" ", b"f": b" "}
"""What letters stand for; quotes and slashes for themselves. Other backslashes part words."""


class Plain(NamedTuple):
    """A text without escapes."""

    data: bytes
    ends: list[int]
    """Where each replacement ends in it."""
    shifts: list[int]
    """How much further on the same place is in the text as it is written, behind each."""

    def written(self, place: int) -> int:
        """Where a place of it is in the text as it is written."""
        before = bisect.bisect_right(self.ends, place)
        return place + (self.shifts[before - 1] if before else 0)


def plain_forms(data: bytes) -> Iterator[Plain]:
    """Yield a text as it reads, as long as another round of taking escapes away changes it.

    Places are those of the form before it; the first form's are those of the text itself.
    """
    for _ in range(_ROUNDS):
        if not (b"\\" in data or b"%" in data or b"&" in data):
            return
        plain = _plain(data)
        if plain is None:
            return
        yield plain
        data = plain.data


def readings(data: bytes) -> Iterator[bytes]:
    """Yield some bytes as they are written and as they read, the same forms without their places.

    A fold may hold 20 MB: one form after the other is in memory, and no list of its escapes.
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
    """Places that part bytes into pieces, none of them inside of an escape."""
    at = 0
    while at < len(data):
        yield at
        clean = _CLEAN.search(data, at + _PIECE)
        at = len(data) if clean is None else clean.end()
    yield len(data)


_PIECE = 262_144
_CLEAN = re.compile(rb"[^\\%&]{12}")
"""More bytes than an escape has behind its first sign."""


def _plain(data: bytes) -> Plain | None:
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
    return Plain(b"".join(pieces), ends, list(accumulate(lengths)))


def _sign(escape: re.Match[bytes]) -> bytes:
    """What an escape stands for, never nothing: places behind it must be told from its own."""
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
