"""Split a body into its messages and the bytes around them, without parsing either."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from holdfast.errors import LimitError, ShapeError
from holdfast.wire.dialect import Dialect
from holdfast.wire.json_places import Place, dotted
from holdfast.wire.strict import fields, items, json_type, offsets, parse

_GAP = re.compile(rb"\s*,\s*")
_OPEN = re.compile(rb"\[\s*")
_WHITE = b" \t\r\n"


class BodyFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a body around its messages."""

    head: bytes
    """Bytes before the first message."""
    gap: bytes = b","
    """Bytes between two messages."""
    tail: bytes
    """Bytes after the last message."""
    place: Place
    """Position of the message list in the body."""
    bare: bool = False
    """Whether the body has a single string instead of a list (`"input": "text"`)."""

    @property
    def hollow(self) -> bytes:
        """Return the body without its messages."""
        return self.head + (b'""' if self.bare else b"") + self.tail

    def __repr__(self) -> str:
        return f"<Frame around {dotted(self.place)}, {len(self.hollow)} bytes>"


def pack(frame: BodyFrame, gaps: Sequence[bytes] = ()) -> bytes:
    """Return a frame as bytes for `unpack`, with all gaps if they differ.

    The parts are separated by a zero byte, which JSON cannot contain.
    """
    return b"\0".join([frame.head, frame.tail, *(gaps or (frame.gap,))])


class PackedFrame(NamedTuple):
    """The bytes around messages, as stored."""

    head: bytes
    tail: bytes
    gaps: tuple[bytes, ...]
    """A single gap used between all messages, or one gap per pair."""

    @property
    def hollow(self) -> bytes:
        """Return the body without its messages."""
        bare = not self.head.rstrip().endswith(b"[")
        return self.head + (b'""' if bare else b"") + self.tail

    def around(self, spans: Sequence[bytes]) -> bytes:
        """Return the complete body with the given messages."""
        if len(self.gaps) == 1:
            return self.head + self.gaps[0].join(spans) + self.tail
        between = (*self.gaps, b"")
        parts = [part for span, gap in zip(spans, between, strict=True) for part in (span, gap)]
        return self.head + b"".join(parts) + self.tail


def unpack(packed: bytes) -> PackedFrame:
    """Parse the bytes written by `pack`."""
    head, tail, *gaps = packed.split(b"\0")
    return PackedFrame(head, tail, tuple(gaps))


def uneven_gaps(
    frame: BodyFrame, spans: Sequence[bytes | memoryview], body: bytes
) -> tuple[bytes, ...]:
    """Return the bytes between the messages if they differ; otherwise an empty tuple."""
    if len(spans) < 3 or _is_even(frame, spans, body):
        return ()
    gaps = []
    at = len(frame.head)
    for span in spans[:-1]:
        at += len(span)
        between = _GAP.match(body, at)
        assert between is not None
        gaps.append(between.group())
        at = between.end()
    return tuple(gaps)


def _is_even(frame: BodyFrame, spans: Sequence[bytes | memoryview], body: bytes) -> bool:
    """Return whether all gaps are equal, without copying the body."""
    at = len(frame.head)
    for span in spans[:-1]:
        at += len(span)
        if not body.startswith(frame.gap, at):
            return False
        at += len(frame.gap)
    # A longer gap with the same start shifts everything after it.
    return at + len(spans[-1]) + len(frame.tail) == len(body)


class NoMessagesError(ShapeError):
    """The body has no messages where its dialect expects them."""


def take_apart(raw: bytes, dialect: Dialect) -> tuple[BodyFrame, list[msgspec.Raw]]:
    """Split a body into its frame and the spans of its messages."""
    top = top_level(raw)
    for place in dialect.LISTS:
        if _holds(top, place):
            return _cut(raw, place, top)
    raise NoMessagesError(
        f"the body has no list of messages, as {dialect.NAME} has",
        where=dotted(dialect.LISTS[0]),
        fix=f"Put the messages into {dialect.LISTS[0][-1]!r}, or send the body as the dialect in "
        "which it is written.",
    )


def _holds(top: dict[str, msgspec.Raw], place: Place) -> bool:
    *outer, last = place
    for key in outer:
        inner = top.get(str(key))
        if inner is None or not bytes(inner).startswith(b"{"):
            return False
        top = fields(inner)
    return last in top


def top_level(raw: bytes) -> dict[str, msgspec.Raw]:
    """Return the spans of the body's own fields."""
    try:
        return fields(raw)
    except (ValueError, LimitError, msgspec.MsgspecError):
        value = parse(raw)  # raises with the location, unless it is valid JSON of another type
        if isinstance(value, dict):
            raise  # the parser reached its nesting limit one level earlier
        raise ShapeError(
            f"expected an object, found {json_type(value)}",
            where="$",
            fix="A request body is a JSON object.",
        ) from None


def _cut(
    raw: bytes, place: Place, top: Mapping[str, msgspec.Raw]
) -> tuple[BodyFrame, list[msgspec.Raw]]:
    start, stop = offsets(raw, place, top)
    if raw[start] == ord('"'):
        frame = BodyFrame(head=raw[:start], tail=raw[stop:], place=place, bare=True)
        return frame, [msgspec.Raw(raw[start:stop])]
    if raw[start] != ord("["):
        raise ShapeError(
            f"expected a list of messages, found {json_type(parse(raw[start:stop], place))}",
            where=dotted(place),
            fix="Check the dialect, or see `holdfast request validate --help`.",
        )
    spans = items(memoryview(raw)[start:stop])
    opened = _OPEN.match(raw, start, stop)
    assert opened is not None
    if not spans:
        return BodyFrame(head=raw[: start + 1], tail=raw[start + 1 :], place=place), spans
    end = stop - 1
    while raw[end - 1] in _WHITE:
        end -= 1
    between = _GAP.match(raw, opened.end() + len(memoryview(spans[0])))
    gap = between.group() if between else b","
    return BodyFrame(head=raw[: opened.end()], gap=gap, tail=raw[end:], place=place), spans
