"""Read a body into a Conversation, write it back, and guess which dialect it is in.

reader: the last step of the wire layer's way in, and the first of its way out.
"""

from __future__ import annotations

import re

import msgspec

from holdfast.errors import ShapeError, WireError
from holdfast.wire import anthropic, cohere, converse, gemini, openai_chat, openai_responses
from holdfast.wire.conversation import Conversation
from holdfast.wire.detect import guess
from holdfast.wire.dialect import Dialect
from holdfast.wire.frame import Frame, take_apart
from holdfast.wire.message import Message
from holdfast.wire.strict import Limits, check_keys, parse, to_bytes

DIALECTS: dict[str, Dialect] = {
    module.NAME: module
    for module in (openai_chat, openai_responses, anthropic, gemini, converse, cohere)
}
"""Every dialect, by name."""

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
    """Read a request body: bytes, text, or a dictionary of JSON values.

    The dialect is detected if it is left out. With `previous`, the conversation that an earlier
    request of the same client was read into, only what was appended since is read.
    """
    raw = to_bytes(body, limits)
    if previous is not None and dialect in (None, previous.dialect):
        extended = _extend(previous, raw, limits)
        if extended is not None:
            return extended
    check_keys(raw, limits)
    name = guess(raw) if dialect is None else dialect
    return _read(raw, dialect_named(name), previous, limits)


def write(conversation: Conversation) -> bytes:
    """Write a conversation; what was not edited keeps its very bytes."""
    if conversation.source is not None:
        return conversation.source
    frame = conversation.frame
    return frame.head + frame.gap.join([m.span for m in conversation.messages]) + frame.tail


def dialect_named(name: object) -> Dialect:
    """Look a dialect up, or raise ShapeError with the names there are."""
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
    known: Conversation | None = None,
    limits: Limits = _DEFAULT_LIMITS,
) -> Conversation:
    frame, spans = take_apart(raw, dialect)
    # One object of 790,000 keys takes half a second, in which nothing else runs: messages may hold
    # many between them, but nobody has so many tools.
    check_keys(frame.hollow, Limits(max_keys=max(1, limits.max_keys // _KEYS_AROUND)))
    body = parse(frame.hollow)
    old = known.messages if known is not None and known.dialect == dialect.NAME else ()
    messages = []
    for n, span in enumerate(spans):
        if n < len(old) and bytes(span) == bytes(old[n].span):
            messages.append(old[n])
            continue
        place = frame.place if frame.bare else (*frame.place, n)
        role = dialect.check(parse(span, place), place)
        messages.append(Message(span, role, dialect))
    return Conversation(dialect, frame, tuple(messages), source=raw, body=body)


def _extend(previous: Conversation, raw: bytes, limits: Limits) -> Conversation | None:
    """Read a body that begins like the previous one; None if it does not.

    The bytes up to the last known message are compared, not read: the body is read as if the
    known messages were not there.
    """
    source, frame = previous.source, previous.frame
    if source is None or frame.bare or not previous.messages:
        return None
    known = len(source) - len(frame.tail)
    # Views are compared byte by byte, beginnings at once: 20 MB in 2 ms instead of 200.
    if not raw.startswith(memoryview(source)[:known]):
        return None
    comma = _COMMA.match(raw, known)
    added = frame.head + raw[comma.end() if comma else known :]
    check_keys(added, limits)
    try:
        rest = _read(added, _module(previous))
    except WireError:
        return None  # reading it whole gives the error its right place
    if bool(comma) != bool(rest.messages):
        return None  # a comma too few or too many
    messages = (*previous.messages, *rest.messages)
    tail = rest.frame.tail if rest.messages else raw[known:]
    # What stands between messages is seen when there are two.
    gap = comma.group() if comma and len(previous.messages) == 1 else frame.gap
    _look_into(raw, len(frame.head), messages)
    return Conversation(
        _module(previous),
        Frame(head=frame.head, gap=gap, tail=tail, place=frame.place),
        messages,
        source=raw,
        body=rest.rest,
    )


def _look_into(raw: bytes, at: int, messages: tuple[Message, ...]) -> None:
    """Let messages be windows on this body, which holds them too: the one before it can go."""
    body = memoryview(raw)
    for message in messages:
        stop = at + len(memoryview(message.span))
        message.span = msgspec.Raw(body[at:stop])
        comma = _COMMA.match(raw, stop)
        at = comma.end() if comma else stop


def _module(conversation: Conversation) -> Dialect:
    return DIALECTS[conversation.dialect]
