"""Parse a body into a Conversation, and write it back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from holdfast.errors import ShapeError, WireError
from holdfast.wire import anthropic, cohere, converse, gemini, openai_chat, openai_responses
from holdfast.wire.conversation import Conversation
from holdfast.wire.detect import guess
from holdfast.wire.dialect import Dialect
from holdfast.wire.frame import BodyFrame, take_apart
from holdfast.wire.message import Body, Message, MessageWindow, common_prefix, spans_of
from holdfast.wire.strict import Limits, check_keys, parse, to_bytes

DIALECTS: dict[str, Dialect] = {
    module.NAME: module
    for module in (openai_chat, openai_responses, anthropic, gemini, converse, cohere)
}
"""All dialects by name."""

_COMMA = re.compile(rb"\s*,\s*")
_DEFAULT_LIMITS = Limits()
_KEYS_AROUND = 4


def read(
    body: object,
    dialect: str | None = None,
    *,
    previous: Conversation | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> Conversation:
    """Parse a request body: bytes, text, or a dictionary of JSON values.

    The dialect is detected if it is omitted. With `previous`, the conversation of the client's
    previous request, only the appended part is parsed.
    """
    raw = to_bytes(body, limits)
    if previous is not None and dialect in (None, previous.dialect):
        extended = _extend(previous, raw, limits)
        if extended is not None:
            return extended
    check_keys(raw, limits)
    name = guess(raw) if dialect is None else dialect
    spoken = dialect_named(name)
    if previous is None or previous.dialect != spoken.NAME:
        return _read(raw, spoken, limits)
    return _read(raw, spoken, limits, around=previous, earlier=previous.messages)


def write(conversation: Conversation, before: Conversation | None = None) -> bytes:
    """Return a conversation as bytes; unedited parts keep their bytes.

    `before` is the conversation written last; their common prefix is copied in one piece.
    """
    if conversation.source is not None:
        return conversation.source
    if conversation.written is None:
        frame, shared = conversation.frame, 0
        pieces: list[bytes | memoryview] = [frame.head]
        if before is not None and (shared := _written_before(conversation, before)):
            pieces = [_first_bytes(before, shared)]
        spans = spans_of(conversation.messages[shared:])
        if shared and spans:
            pieces.append(frame.gap)
        conversation.written = b"".join((*pieces, frame.gap.join(spans), frame.tail))
    return conversation.written


def _written_before(conversation: Conversation, before: Conversation) -> int:
    """Return the number of first messages that were written last time, with equal surroundings."""
    old, new = before.frame, conversation.frame
    if before.written is None or old.bare or (old.head, old.gap) != (new.head, new.gap):
        return 0
    if conversation.begins_with(before.messages):
        return len(before.messages)
    return common_prefix(before.messages, conversation.messages)


def _first_bytes(before: Conversation, shared: int) -> memoryview:
    """Return the bytes written for the first messages, including everything before them."""
    later = before.messages[shared:]
    size = sum(message.size + len(before.frame.gap) for message in later)
    body = memoryview(before.written or b"")
    return body[: len(body) - len(before.frame.tail) - size]


def dialect_named(name: object) -> Dialect:
    """Return a dialect by name; raise `ShapeError` with the known names."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise ShapeError(
            f"there is no dialect {name!r:.40}",
            where="dialect",
            fix=f"Use one of {', '.join(DIALECTS)}.",
        )
    return DIALECTS[name]


def _read(
    raw: bytes,
    dialect: Dialect,
    limits: Limits,
    *,
    around: Conversation | None = None,
    earlier: Sequence[Message] = (),
) -> Conversation:
    """Parse a body; reuse the known frame of `around` and the known messages of `earlier`."""
    frame, spans = take_apart(raw, dialect)
    body = Body(raw)
    messages = []
    even = True
    at = len(frame.head)
    for n, span in enumerate(spans):
        window = MessageWindow(body, at, at + len(memoryview(span)))
        if n < len(earlier) and bytes(span) == earlier[n].raw:
            message = earlier[n]
            message.window = window  # a window on the previous body would keep all of it in memory
        else:
            place = frame.place if frame.bare else (*frame.place, n)
            value = parse(span, place)
            message = Message(window, dialect.check(value, place), dialect, value)
        messages.append(message)
        if comma := _COMMA.match(raw, window.stop):
            at = comma.end()
            even = even and comma.group() == frame.gap
    outer_body = _rest(frame, around, limits)
    return Conversation(dialect, frame, tuple(messages), source=raw, body=outer_body, even=even)


def _rest(frame: BodyFrame, before: Conversation | None, limits: Limits) -> Any:
    """Return the parsed frame, reused if unchanged: some clients send 60 KB of tools each time."""
    hollow = frame.hollow
    if before is not None and before.frame.hollow == hollow:
        return before.rest
    # Parsing one object of 790,000 keys blocks everything for half a second. Messages may have that
    # many keys in total, but tools never do.
    check_keys(hollow, Limits(max_keys=max(1, limits.max_keys // _KEYS_AROUND)))
    return parse(hollow)


def _extend(previous: Conversation, raw: bytes, limits: Limits) -> Conversation | None:
    """Parse a body that begins like the previous one; return None if it does not.

    The bytes up to the last unchanged message are compared instead of parsed, and the rest is
    parsed as if those messages were absent.
    """
    source, frame = previous.source, previous.frame
    if source is None or frame.bare or not previous.messages:
        return None
    shared, end = _shared_prefix(previous, source, raw)
    if not shared:
        return None
    comma = _COMMA.match(raw, end)
    start = comma.end() if comma else end
    added = frame.head + raw[start:]
    check_keys(added, limits)
    try:
        later = previous.messages[shared:]
        appended = _read(added, _module(previous), limits, around=previous, earlier=later)
    except WireError:
        return None  # parsing the complete body reports the error at its actual place
    if bool(comma) != bool(appended.messages):
        return None  # a comma is missing or superfluous
    all_shared = shared == len(previous.messages)
    body = _extended_body(previous, raw) if all_shared else None
    for message in appended.messages:
        _set_window(message, body, start - len(frame.head))
    earlier = previous.messages if all_shared else previous.messages[:shared]
    tail = appended.frame.tail if appended.messages else raw[end:]
    # A gap between messages is only visible if there are two.
    gap = comma.group() if comma and shared == 1 else frame.gap
    even = len(appended.messages) < 2 or (appended.even and appended.frame.gap == gap)
    return Conversation(
        _module(previous),
        BodyFrame(head=frame.head, gap=gap, tail=tail, place=frame.place),
        earlier + appended.messages,
        source=raw,
        body=appended.rest,
        tools=previous.tools_if_read if appended.rest is previous.rest else None,
        extends=earlier,
        even=even and (shared == 1 or (previous.even and (not comma or comma.group() == gap))),
    )


def _shared_prefix(previous: Conversation, source: bytes, raw: bytes) -> tuple[int, int]:
    """Return how many previous messages a body begins with, and where the last one ends.

    Clients of Anthropic move their cache marks with each request, so a body often differs in the
    last few of the previous messages.
    """
    end = len(source) - len(previous.frame.tail)
    # `startswith` compares at once, views byte by byte: 2 ms instead of 200 for 20 MB.
    if raw.startswith(memoryview(source)[:end]):
        return len(previous.messages), end
    common_bytes = _common_length(source, raw)
    gap = previous.frame.gap
    last = len(previous.messages) - 1
    for n in range(last, max(0, last - _MOST_CHANGED), -1):
        end -= previous.messages[n].size
        if not source.endswith(gap, 0, end):
            break  # the gaps between messages differ
        end -= len(gap)
        if end <= common_bytes:
            return n, end
    return 0, 0


_MOST_CHANGED = 100
"""Maximum messages at the end that may have changed; beyond it, all are compared one by one."""


def _common_length(left: bytes, right: bytes) -> int:
    """Return the length of the common prefix, by bisection, because comparisons are fast."""
    view = memoryview(left)
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if right.startswith(view[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _extended_body(previous: Conversation, raw: bytes) -> Body | None:
    """Return the previous body extended to the new one; None if another body replaced it."""
    window = previous.messages[-1].window
    if isinstance(window, MessageWindow) and window.body.grow(previous.source, raw):
        return window.body
    return None


def _set_window(message: Message, body: Body | None, shift: int) -> None:
    """Set the position of a separately parsed message in the complete body.

    If the body could not be extended, the message keeps its own bytes: a window would keep a
    complete body in memory for each turn.
    """
    window = message.window
    if body is not None and isinstance(window, MessageWindow):
        message.window = MessageWindow(body, window.start + shift, window.stop + shift)
    else:
        message.window = message.raw


def _module(conversation: Conversation) -> Dialect:
    return DIALECTS[conversation.dialect]
