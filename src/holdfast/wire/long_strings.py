"""Parse and write JSON with very long strings in steps, so that other threads can run.

A parser holds the GIL until it finishes: 20 MB of escapes took it 70 ms, several times per request,
while the event loop waited. Strings from 16 KB on are therefore replaced by a short placeholder and
decoded separately in pieces.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import accumulate, pairwise
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

# Bytes searched at once; a string that does not end within them is long.
_WINDOW = 16_384
# Bytes or characters of a long string that are processed at once: 2 ms for escapes.
_PIECE = 262_144
# Random placeholder, which no content can contain because it never leaves this module.
_STAND_IN = token_hex(16)
# Maximum share of a value that remains without its long strings: filling them in visits all of it.
_SKELETON_SHARE = 0.25

_SHORT = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
MEMBER = re.compile(rb'\s*[{,]\s*"(?:[^"\\]++|\\.)*+"\s*:\s*', re.DOTALL)
"""Bytes before a value in an object."""
_ELEMENT = re.compile(rb"\s*[\[,]\s*")
_COLON = re.compile(rb"\s*:")
# A string cannot be cut after such an end: an escape, half a surrogate pair, part of a multi-byte
# character. The matched text is masked, so that a backslash always starts an escape.
_LOOSE_END = re.compile(
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z|[\xc0-\xff][\x80-\xbf]*\Z"
)
_LONGEST_END = 12

_decode = msgspec.json.Decoder().decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.encode


class _LongString(NamedTuple):
    """The span of a long string with its quotes, and the offsets where it may be cut."""

    start: int
    stop: int
    cuts: tuple[int, ...]


class _Skeleton(NamedTuple):
    """JSON without its long strings."""

    skeleton: bytes
    longs: tuple[_LongString, ...]
    ends: tuple[int, ...]
    """End offset of each placeholder in the skeleton."""
    shifts: tuple[int, ...]
    """Number of bytes missing up to each end."""

    def place(self, at: int) -> int:
        """Return the original offset of an offset in the skeleton."""
        n = bisect_right(self.ends, at)
        return at + (self.shifts[n - 1] if n else 0)


def without_long_strings(data: memoryview) -> tuple[bytes | memoryview, Callable[[Any], Any]]:
    """Return JSON without its long strings, and a function that restores them after parsing.

    If they are not most of the data it stays unchanged, because restoring visits every value.
    """
    hollow = _hollow(data)
    if hollow is None or len(hollow.skeleton) > _SKELETON_SHARE * len(data):
        return data, lambda value: value
    return hollow.skeleton, partial(_put_back, data, hollow.longs)


def _put_back(data: memoryview, longs: Sequence[_LongString], value: Any) -> Any:
    texts = {_name(n): _text(data, long) for n, long in enumerate(longs)}
    try:
        return _restore_strings(value, texts)
    except RecursionError:  # the parser itself supports deeper nesting
        return _decode(data)


def decode(data: memoryview) -> Any:
    """Parse a value that is known to be valid JSON."""
    skeleton, filled = without_long_strings(data)
    return filled(_decode(skeleton))


def fields(data: memoryview) -> dict[str, msgspec.Raw]:
    """Split an object into the spans of its values."""
    hollow = _hollow(data)
    if hollow is None:
        return _fields(data)
    spans = _fields(hollow.skeleton)
    windows = _windows(data, hollow, list(spans.values()), MEMBER.match)
    return _fields(data) if windows is None else dict(zip(spans, windows, strict=True))


def items(data: memoryview) -> list[msgspec.Raw]:
    """Split an array into the spans of its elements."""
    hollow = _hollow(data)
    if hollow is None:
        return _items(data)
    windows = _windows(data, hollow, _items(hollow.skeleton), _ELEMENT.match)
    return _items(data) if windows is None else windows


def write_in_parts(value: Any) -> Iterator[bytes]:
    """Yield a value as JSON in parts to be concatenated."""
    texts: dict[str, str] = {}
    try:
        skeleton = _encode(_replace_strings(value, texts))
    except RecursionError:  # the writer itself supports deeper nesting
        skeleton, texts = _encode(value), {}
    at = 0
    for name, text in texts.items():
        stand_in = _encode(name)
        start = skeleton.index(stand_in, at)
        yield skeleton[at : start + 1]
        for begin in range(0, len(text), _PIECE):
            yield _encode(text[begin : begin + _PIECE])[1:-1]
        at = start + len(stand_in) - 1
    yield skeleton[at:]


def _name(number: int) -> str:
    return f"{_STAND_IN}{number}."


def _hollow(data: memoryview) -> _Skeleton | None:
    """Return JSON without its long strings; None if none can be removed."""
    longs: list[_LongString] = []
    at, size = 0, len(data)
    while at < size:
        short = _SHORT.match(data, at, min(at + _WINDOW, size))
        end = short.end() if short is not None else at
        if end == at:
            long = _long(data, at)
            # object keys are parsed with the rest
            if long is None or _COLON.match(data, long.stop):
                return None
            longs.append(long)
            end = long.stop
        at = end
    if not longs:
        return None
    parts: list[bytes | memoryview] = []
    lengths: list[int] = []
    shifts: list[int] = []
    at = 0
    for n, long in enumerate(longs):
        stand_in = _encode(_name(n))
        parts += [data[at : long.start], stand_in]
        lengths.append(long.start - at + len(stand_in))
        shifts.append(long.stop - long.start - len(stand_in))
        at = long.stop
    skeleton = b"".join([*parts, data[at:]])
    return _Skeleton(skeleton, tuple(longs), tuple(accumulate(lengths)), tuple(accumulate(shifts)))


def _long(data: memoryview, start: int) -> _LongString | None:
    """Return the string that starts at a quote; None if it has no end."""
    cuts = [start + 1]
    while True:
        at = cuts[-1]
        piece = bytes(data[at : at + _PIECE])
        masked = piece
        if b"\\" in piece:  # an even number of backslashes escapes nothing after it
            masked = piece.replace(b"\\\\", b"..").replace(b'\\"', b"..")
        if (quote := masked.find(b'"')) >= 0:
            return _LongString(start, at + quote + 1, (*cuts, at + quote))
        loose = _LOOSE_END.search(masked, max(0, len(masked) - _LONGEST_END))
        usable = loose.start() if loose is not None else len(masked)
        if not usable or at + len(piece) == len(data):
            return None
        cuts.append(at + usable)


def _text(data: memoryview, long: _LongString) -> str:
    text = ""
    for start, stop in pairwise(long.cuts):
        # Appending works in place; joining the pieces would hold the text twice.
        text += _decode(b"".join((b'"', data[start:stop], b'"')))
    return text


def utf8(literal: memoryview) -> bytes:
    """Return the UTF-8 bytes of a string literal, without building a wide Python string."""
    long = _long(literal, 0)
    assert long is not None
    letters = BytesIO()
    for start, stop in pairwise(long.cuts):
        letters.write(_decode(b"".join((b'"', literal[start:stop], b'"'))).encode())
    return letters.getvalue()


def _restore_strings(value: Any, texts: dict[str, str]) -> Any:
    """Return a value with its long strings restored."""
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, list):
        return [_restore_strings(inner, texts) for inner in value]
    if isinstance(value, dict):
        return {key: _restore_strings(inner, texts) for key, inner in value.items()}
    return value


def _replace_strings(value: Any, texts: dict[str, str]) -> Any:
    """Return a value with its long strings replaced by names, and add the strings to `texts`."""
    if isinstance(value, str) and len(value) > _WINDOW:
        name = _name(len(texts))
        texts[name] = value
        return name
    if isinstance(value, list):
        return [_replace_strings(inner, texts) for inner in value]
    if isinstance(value, dict):
        return {key: _replace_strings(inner, texts) for key, inner in value.items()}
    return value


def _windows(
    data: memoryview,
    hollow: _Skeleton,
    spans: list[msgspec.Raw],
    before: Callable[[bytes, int], re.Match[bytes] | None],
) -> list[msgspec.Raw] | None:
    """Return spans of the original data for those of the skeleton; None for repeated keys."""
    windows = []
    at = 0
    for span in spans:
        head = before(hollow.skeleton, at)
        if head is None or not hollow.skeleton.startswith(memoryview(span), head.end()):
            return None
        at = head.end() + len(memoryview(span))
        windows.append(msgspec.Raw(data[hollow.place(head.end()) : hollow.place(at)]))
    return windows
