"""Map offsets in JSON text to paths, and write paths, without parsing.

The scan also works on broken JSON, and it is limited, so that an error message is always fast.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import islice

import orjson

Place = tuple[str | int, ...]
"""Keys and indexes that lead to a value."""


def dotted(place: Place, root: str = "$") -> str:
    """Write a place as a JSONPath: `$.messages[3].content[0]`."""
    steps = (
        f"[{step}]"
        if isinstance(step, int)
        else f".{step}"
        if _PLAIN_KEY.fullmatch(step)
        else f"[{json.dumps(step[:40])}]"
        for step in place
    )
    return root + "".join(steps)


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


# `[^"\]` written as three ranges lets the engine use a table per byte, three times faster.
_TOKEN = re.compile(rb'"(?:[\x00-!#-\[\]-\xff]++|\\.)*+"?|[\[\]{},:]', re.DOTALL)
_MOST_TOKENS = 300_000
"""Maximum tokens scanned, so that an error message is fast to make."""


def place_at(raw: bytes, offset: int) -> Place:
    """Return the place of the value at an offset, also in broken JSON."""
    return places_at(raw, [offset])[0]


def places_at(raw: bytes, offsets: list[int]) -> list[Place]:
    """Return the distinct places of ascending offsets; the root if the scan limit is reached."""
    trail = _TokenTrail()
    places: list[Place] = []
    passed = 0
    tokens = _TOKEN.finditer(raw, 0, offsets[-1] + 1)
    for match in islice(tokens, _MOST_TOKENS):
        if offsets[passed] < match.end():
            places.append(trail.place)
            passed = bisect_left(offsets, match.end(), passed)
            if passed == len(offsets):
                break
        trail.step(match.group())
    if passed < len(offsets):
        places.append(() if next(tokens, None) else trail.place)
    return list(dict.fromkeys(places))


def duplicate_place(raw: bytes) -> Place:
    """Return the place of the first repeated key of an object."""
    trail = _TokenTrail()
    open_keys: list[set[str]] = []  # the keys of every open object
    for match in islice(_TOKEN.finditer(raw), _MOST_TOKENS):
        token = match.group()
        trail.step(token)
        if token == b"{":
            open_keys.append(set())
        elif token == b"}":
            open_keys.pop()
        elif token == b":":
            key = str(trail.place[-1])
            if key in open_keys[-1]:
                return trail.place
            open_keys[-1].add(key)
    return ()


class _TokenTrail:
    """The current place of a token scan; broken JSON does not stop it."""

    def __init__(self) -> None:
        self._stack: list[str | int | None] = []  # None: an object before its first key
        self._string = b""

    @property
    def place(self) -> Place:
        return tuple(step for step in self._stack if step is not None)

    def step(self, token: bytes) -> None:
        top = self._stack[-1] if self._stack else None
        if token == b"{":
            self._stack.append(None)
        elif token == b"[":
            self._stack.append(0)
        elif token in (b"]", b"}"):
            del self._stack[-1:]
        elif token == b",":
            if isinstance(top, int):
                self._stack[-1] = top + 1
        elif token == b":":
            if self._stack and not isinstance(top, int):
                self._stack[-1] = _key_text(self._string)
        else:
            self._string = token


def _key_text(token: bytes) -> str:
    try:
        return str(orjson.loads(token))
    except orjson.JSONDecodeError:
        return token.strip(b'"').decode(errors="replace")
