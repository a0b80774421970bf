"""Shrinking of a failing request to the smallest one that still fails.

A finding on one line is one that gets fixed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from tests.hardening.asks import Asked
from tests.wire.test_fuzz import places

GoesWrong = Callable[[Asked], Awaitable[bool]]
_MOST_TRIES = 400


async def shrunk(asked: Asked, goes_wrong: GoesWrong) -> Asked:
    """The smallest request that this many tries have come to."""
    tries = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(asked):
            tries += 1
            if tries > _MOST_TRIES:
                return asked
            if await goes_wrong(smaller):
                asked, progress = smaller, True
                break
    return asked


def _smaller(asked: Asked) -> Iterator[Asked]:
    for number in range(len(asked.headers)):
        yield asked._replace(headers=asked.headers[:number] + asked.headers[number + 1 :])
    try:
        value = json.loads(asked.body)
    except ValueError:
        yield from _shorter(asked)
        return
    for way in sorted(places(value), key=len):
        yield asked._replace(body=json.dumps(_without(value, way)).encode())
    for way in places(value):
        text = _at(value, way)
        if isinstance(text, str) and len(text) > 8:
            half = _with(value, way, text[: len(text) // 2])
            yield asked._replace(body=json.dumps(half).encode())


def _shorter(asked: Asked) -> Iterator[Asked]:
    """Bodies that are no JSON lose pieces, large ones first."""
    size = len(asked.body) // 2
    while size:
        for start in range(0, len(asked.body), size):
            yield asked._replace(body=asked.body[:start] + asked.body[start + size :])
        size //= 4


def _at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


def _without(value: Any, way: tuple[Any, ...]) -> Any:
    value = copy.deepcopy(value)
    del _at(value, way[:-1])[way[-1]]
    return value


def _with(value: Any, way: tuple[Any, ...], other: Any) -> Any:
    value = copy.deepcopy(value)
    _at(value, way[:-1])[way[-1]] = other
    return value
