"""Go on from the last request, also where the client has moved its cache marks since.

following: after state, before taking. Clients of Anthropic put `cache_control` on their newest
messages and take it off older ones, so that a message they sent before comes back with other
bytes. It is the same message: what was decided about it stands, on its new bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Any

import msgspec

from holdfast.fitting.draft import copied
from holdfast.fitting.state import FitState
from holdfast.trim.anchors import MARK
from holdfast.trim.standing import STAND, Stand
from holdfast.wire import DIALECTS, Block, Conversation, Message, Text
from holdfast.wire.message import beginning, result_texts
from holdfast.wire.places import unmarked
from holdfast.wire.strict import encode, splice

_MARK = "cache_control"


def followed(state: FitState, asked: Conversation) -> FitState | None:
    """The state as it applies to a later request; None if its history was rewritten."""
    old, new = state.asked.messages, asked.messages
    same = beginning(old, new)  # reading shares the messages whose bytes are equal
    if same == len(old):
        return state
    if len(new) < len(old) or asked.dialect != state.asked.dialect:
        return None
    moved: dict[int, Message] = {}
    for before, now in zip(old[same:], new[same : len(old)], strict=True):
        if before is not now:
            if not _alike(before, now):
                return None
            moved[id(before)] = now
            MARK.carry(before, now)
    asked_before = state.asked.with_messages(new[: len(old)])
    if state.sent.messages == old:
        return msgspec.structs.replace(state, asked=asked_before, sent=asked_before)
    # Marks move at the end: what went out for the messages before it stands as it did.
    start = bisect_right(state.origins, same, key=itemgetter(1))
    later = (_on_new_bytes(message, moved) for message in state.sent.messages[start:])
    sent = state.sent.with_messages((*state.sent.messages[:start], *later))
    return msgspec.structs.replace(state, asked=asked_before, sent=sent)


def _alike(before: Message, now: Message) -> bool:
    if before.role != now.role:
        return False
    spans = bytes(before.span), bytes(now.span)
    if spans[0] == spans[1]:
        return True
    if not any(_MARK.encode() in span for span in spans):
        return False
    return bool(unmarked(before.parsed) == unmarked(now.parsed))


def _on_new_bytes(message: Message, moved: dict[int, Message]) -> Message:
    """What went out for a message, made of the bytes that the client sends now."""
    if id(message) in moved:
        return moved[id(message)]
    stand = STAND.get(message)
    if stand is None or moved.keys().isdisjoint(map(id, stand.originals)):
        return message
    originals = tuple(moved.get(id(original), original) for original in stand.originals)
    if stand.fold is not None:
        follower = copied(message)  # a digest has no marks
    elif originals and (span := _with_shown_texts(message, stand, originals[stand.own])):
        follower = Message(span, message.role, DIALECTS[message.dialect])
    else:
        follower = _marked_like(message, originals)
    STAND.put(follower, msgspec.structs.replace(stand, originals=originals))
    return follower


def _with_shown_texts(message: Message, stand: Stand, now: Message) -> bytes | None:
    """The client's new bytes with what was shown of them; None if the two do not pair up."""
    dialect = DIALECTS[now.dialect]
    span = bytes(now.span)
    texts = [_texts(side) for side in (stand.originals[stand.own], message, now)]
    if not texts[1] or len({len(side) for side in texts}) != 1:
        return None
    for (_, was), (_, shown), (block, _) in zip(*texts, strict=True):
        if shown != was:
            span = splice(span, block.slot, encode(dialect.content(block, shown)))
    return span


def _texts(message: Message) -> list[tuple[Block, str]]:
    """What citations and cuts may have changed: results, and the words beside them."""
    results = [(block, text) for _, block, text in result_texts(message)]
    return results + [(block, block.text) for block in message.blocks if isinstance(block, Text)]


def _marked_like(message: Message, originals: tuple[Message, ...]) -> Message:
    """A message that we wrote, with the cache mark that the client's last one has at its end.

    Marks that the client took away must go with it: a provider takes only four.
    """
    value = unmarked(message.value)
    mark = _last_mark(originals[-1].parsed)
    content = value.get("content")
    if mark is not None and isinstance(content, list) and isinstance(content[-1], dict):
        content[-1] = {**content[-1], _MARK: mark}
    return Message(encode(value), message.role, DIALECTS[message.dialect])


def _last_mark(value: Any) -> Any:
    content = value.get("content") if isinstance(value, dict) else None
    last = content[-1] if isinstance(content, list) and content else value
    return last.get(_MARK) if isinstance(last, dict) else None
