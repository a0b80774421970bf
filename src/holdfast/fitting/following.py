"""Continue from the last request where the client sends the same history in another shape.

following: after state, before taking. Clients move their cache marks with every request, and write
a text as a string or as a list with one part: a message that was sent before comes back with other
bytes. It is the same message, so what was decided about it stands. The client's own messages go out
with their new bytes; what went out in the place of others stays, with the marks of the new ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import msgspec

from holdfast.fitting.draft import copied
from holdfast.fitting.state import FitState
from holdfast.trim.anchors import MARK
from holdfast.trim.standing import STAND
from holdfast.wire import Conversation, Message
from holdfast.wire.answers import with_marks
from holdfast.wire.message import beginning
from holdfast.wire.places import fingerprint


def followed(state: FitState, asked: Conversation) -> FitState | None:
    """Return the state as it applies to a later request; None if its history was rewritten."""
    old, new = state.asked.messages, asked.messages
    same = beginning(old, new)  # reading shares the messages whose bytes are equal
    if same == len(old):
        return state
    if len(new) < len(old) or asked.dialect != state.asked.dialect:
        return None
    moved: dict[int, Message] = {}
    for before, now in zip(old[same:], new[same : len(old)], strict=True):
        if before is not now:
            if not _says_the_same(before, now):
                return None
            moved[id(before)] = now
            MARK.carry(before, now)
    asked_before = state.asked.with_messages(new[: len(old)])
    if state.sent.messages == old:
        return msgspec.structs.replace(state, asked=asked_before, sent=asked_before)
    # What went out for the messages before the first change stands as it did.
    start = bisect_right(state.origins, same, key=itemgetter(1))
    groups = _groups(state.sent.messages[start:])
    later = (message for group in groups for message in _on_new_bytes(group, moved))
    sent = state.sent.with_messages((*state.sent.messages[:start], *later))
    return msgspec.structs.replace(state, asked=asked_before, sent=sent)


def _says_the_same(before: Message, now: Message) -> bool:
    return before.role == now.role and fingerprint(before) == fingerprint(now)


def _groups(sent: Sequence[Message]) -> Iterator[list[Message]]:
    """Split what went out into messages, each with those that were brought back behind it.

    An answer that took several calls upstream is one message to the client: the first of its
    messages stands for that, and the others for nothing.
    """
    group: list[Message] = []
    for message in sent:
        stand = STAND.get(message)
        is_part = (
            stand is not None
            and not stand.originals
            and any(edit.action == "rejoin" for edit in stand.edits)
        )
        if group and not is_part:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _on_new_bytes(group: list[Message], moved: Mapping[int, Message]) -> list[Message]:
    """Return what went out for a message, with the cache marks that the client sets now."""
    first = group[0]
    stand = STAND.get(first)
    if stand is None:
        return [moved.get(id(first), first), *group[1:]]
    if moved.keys().isdisjoint(map(id, stand.originals)):
        return group
    originals = tuple(moved.get(id(original), original) for original in stand.originals)
    if stand.fold is not None:  # a digest has no marks; behind it may stand the rest of an answer
        followers = [first, *with_marks(group[1:], originals[-1:])]
    else:
        followers = with_marks(group, [one for one in originals if one.role == first.role])
    if followers[0] is first:
        followers[0] = copied(first)
    for before, now in zip(group, followers, strict=True):
        if now is not before:
            STAND.carry(before, now)
            MARK.carry(before, now)
    STAND.put(followers[0], msgspec.structs.replace(stand, originals=originals))
    return followers
