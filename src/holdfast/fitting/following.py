"""Go on from the last request, also where the client has moved its cache marks since.

following: after state, before fit. Clients of Anthropic put `cache_control` on their newest
messages and take it off older ones, so that a message they sent before comes back with other
bytes. It is the same message: what was decided about it stands, on its new bytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.fitting.state import FitState
from holdfast.trim.edits import result_texts
from holdfast.trim.standing import STAND
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.strict import encode, splice

_MARK = "cache_control"


def followed(state: FitState, source: Conversation) -> FitState | None:
    """The state as it applies to a later request; None if its history was rewritten."""
    old = state.source.messages
    new = source.messages[: len(old)]
    if new == old:  # messages compare by identity, and reading shares those whose bytes are equal
        return state
    if len(new) < len(old) or source.dialect != state.source.dialect:
        return None
    moved: dict[int, Message] = {}
    for before, now in zip(old, new, strict=True):
        if before is not now:
            if not _alike(before, now):
                return None
            moved[id(before)] = now
    followed = state.source.with_messages(new)
    if state.sent is state.source:
        return msgspec.structs.replace(state, source=followed, sent=followed)
    sent = tuple(_on_new_bytes(message, moved) for message in state.sent.messages)
    return msgspec.structs.replace(state, source=followed, sent=state.sent.with_messages(sent))


def _alike(before: Message, now: Message) -> bool:
    if before.role != now.role:
        return False
    spans = bytes(before.span), bytes(now.span)
    if spans[0] == spans[1]:
        return True
    if not any(_MARK.encode() in span for span in spans):
        return False
    return bool(unmarked(before.value) == unmarked(now.value))


def unmarked(value: Any) -> Any:
    """A message without its cache marks: they stand on it, on its parts, and on theirs."""
    if isinstance(value, list):
        return [unmarked(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        key: unmarked(inner) if key == "content" else inner
        for key, inner in value.items()
        if key != _MARK
    }


def _on_new_bytes(message: Message, moved: dict[int, Message]) -> Message:
    """What went out for a message, made of the bytes that the client sends now."""
    if id(message) in moved:
        return moved[id(message)]
    stand = STAND.get(message)
    if stand is None or stand.fold is not None or len(stand.originals) != 1:
        return message
    [original] = stand.originals
    if id(original) not in moved:
        return message
    now = moved[id(original)]
    dialect = DIALECTS[now.dialect]
    span = bytes(now.span)
    texts = zip(*map(result_texts, (original, message, now)), strict=True)
    for (_, _, was), (_, _, shown), (_, block, _) in texts:
        if shown != was:
            span = splice(span, block.slot, encode(dialect.content(block, shown)))
    made = Message(span, now.role, dialect)
    STAND.put(made, msgspec.structs.replace(stand, originals=(now,)))
    return made
