"""Search long texts in steps, so that no single call holds the interpreter for long.

`str.find` over 30 MB is one call of 10 to 20 ms, in which no other thread runs. The event loop
waits for the interpreter several times for each request, so a thread that makes such calls one
after the other delays every request by a multiple of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import AnyStr

STEP = 1_000_000
"""Characters or bytes that one call looks through."""


def find_in_steps(text: AnyStr, part: AnyStr, start: int = 0) -> int:
    """Return what `text.find(part, start)` returns."""
    for at in range(start, len(text), STEP):
        position = text.find(part, at, at + STEP + len(part) - 1)
        if position >= 0:
            return position
    return -1


def lines_in_steps(data: bytes) -> Iterator[bytes]:
    """Split at line ends into pieces of about a million bytes; a longer line is one piece."""
    start = 0
    while start < len(data):
        stop = find_in_steps(data, b"\n", start + STEP) + 1 or len(data)
        yield data[start:stop]
        start = stop
