"""Take a body apart into its messages and the bytes around them, without parsing either.

frame: after strict, before conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from holdfast.errors import LimitError, ShapeError
from holdfast.wire.dialect import Dialect
from holdfast.wire.pointing import Place, dotted
from holdfast.wire.strict import fields, items, json_type, offsets, parse

_GAP = re.compile(rb"\s*,\s*")
_OPEN = re.compile(rb"\[\s*")
_WHITE = b" \t\r\n"


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The body around the messages, as bytes."""

    head: bytes
    """Everything before the first message."""
    gap: bytes = b","
    """What stands between two messages."""
    tail: bytes
    """Everything behind the last message."""
    place: Place
    """Where the list of messages stands in the body."""
    bare: bool = False
    """The list is a single string instead (`"input": "text"`)."""

    @property
    def hollow(self) -> bytes:
        """The body without its messages."""
        return self.head + (b'""' if self.bare else b"") + self.tail

    def __repr__(self) -> str:
        return f"<Frame around {dotted(self.place)}, {len(self.hollow)} bytes>"


def pack(frame: Frame, gaps: Sequence[bytes] = ()) -> bytes:
    """A frame as bytes that `unpack` reads; `gaps` where they are not all the same.

    A zero byte parts them: it stands nowhere in JSON.
    """
    return b"\0".join([frame.head, frame.tail, *(gaps or (frame.gap,))])


class PackedFrame(NamedTuple):
    """The bytes around messages."""

    head: bytes
    tail: bytes
    gaps: tuple[bytes, ...]
    """One for all places between messages, or one for each."""

    @property
    def hollow(self) -> bytes:
        """The body without its messages."""
        bare = not self.head.rstrip().endswith(b"[")
        return self.head + (b'""' if bare else b"") + self.tail

    def around(self, spans: Sequence[bytes]) -> bytes:
        """The whole body with some messages."""
        if len(self.gaps) == 1:
            return self.head + self.gaps[0].join(spans) + self.tail
        between = (*self.gaps, b"")
        parts = [part for span, gap in zip(spans, between, strict=True) for part in (span, gap)]
        return self.head + b"".join(parts) + self.tail


def unpack(packed: bytes) -> PackedFrame:
    """What `pack` wrote."""
    head, tail, *gaps = packed.split(b"\0")
    return PackedFrame(head, tail, tuple(gaps))


def uneven_gaps(
    frame: Frame, spans: Sequence[bytes | memoryview], body: bytes
) -> tuple[bytes, ...]:
    """What stands between the messages of a body, where that is not the same everywhere."""
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


def _is_even(frame: Frame, spans: Sequence[bytes | memoryview], body: bytes) -> bool:
    """Whether the same gap stands between all spans; a copy of the body would tell it too."""
    at = len(frame.head)
    for span in spans[:-1]:
        at += len(span)
        if not body.startswith(frame.gap, at):
            return False
        at += len(frame.gap)
    # A gap that begins like the others and is longer moves all that follow.
    return at + len(spans[-1]) + len(frame.tail) == len(body)


class NoMessagesError(ShapeError):
    """The body has no messages where its dialect has them."""


def take_apart(raw: bytes, dialect: Dialect) -> tuple[Frame, list[msgspec.Raw]]:
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
    """The spans of the body's own fields."""
    try:
        return fields(raw)
    except (ValueError, LimitError, msgspec.MsgspecError):
        value = parse(raw)  # raises with the place, unless it is JSON of another kind
        if isinstance(value, dict):
            raise  # it reads from one frame less of the stack: at its very edge that is enough
        raise ShapeError(
            f"expected an object, found {json_type(value)}",
            where="$",
            fix="A request body is a JSON object.",
        ) from None


def _cut(
    raw: bytes, place: Place, top: Mapping[str, msgspec.Raw]
) -> tuple[Frame, list[msgspec.Raw]]:
    start, stop = offsets(raw, place, top)
    if raw[start] == ord('"'):
        frame = Frame(head=raw[:start], tail=raw[stop:], place=place, bare=True)
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
        return Frame(head=raw[: start + 1], tail=raw[start + 1 :], place=place), spans
    end = stop - 1
    while raw[end - 1] in _WHITE:
        end -= 1
    between = _GAP.match(raw, opened.end() + len(memoryview(spans[0])))
    gap = between.group() if between else b","
    return Frame(head=raw[: opened.end()], gap=gap, tail=raw[end:], place=place), spans
