"""A request between the asked and the sent form, with every edit between the two.

A step changes a request only through a draft: it passes its result and the reason. The draft notes
for each message that is not the client's own which of the client's messages it replaces, and keeps
the frame from before each change around the messages. So there is no difference between asked and
sent without an edit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import msgspec

from holdfast.fitting.reads import PlanEntry
from holdfast.store.records import Edit, EditAction
from holdfast.trim.anchors import MARK
from holdfast.trim.provenance import (
    ADDED,
    REPLACEMENT,
    Replacement,
    edits_of,
    originals_of,
    refs_of,
)
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.frame import BodyFrame
from holdfast.wire.message import common_prefix

Origins = Sequence[tuple[int, int]]
"""For each sent message, the range of the client's messages that it replaces."""


class UnchangedOrigins(Sequence[tuple[int, int]]):
    """The origins of messages that are sent as the client wrote them: each replaces itself.

    A range takes no memory, and to extend it costs the same for 100,000 messages as for one.
    """

    __slots__ = ("_length",)

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, place: slice) -> Origins: ...
    def __getitem__(self, place: int | slice) -> tuple[int, int] | Origins:
        places = range(self._length)[place]
        if isinstance(places, int):
            return places, places + 1
        if places.start == 0 and places.step == 1:
            return UnchangedOrigins(len(places))
        return tuple((n, n + 1) for n in places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<UnchangedOrigins of {self._length} messages>"


def joined(first: Origins, later: Origins) -> Origins:
    """Return origins followed by those of later messages."""
    return (*first, *later) if later else first


Explain = Callable[[Sequence[Message], Sequence[Message], int, int], tuple[Edit, ...]]
"""(messages before, messages after, range of the client's messages) → the edits."""


def because(
    action: EditAction, what: str, why: str, tokens: Callable[[tuple[Message, ...]], float]
) -> Explain:
    """Explain every difference by one reason; `tokens` counts messages."""

    def explain(
        old: Sequence[Message], now: Sequence[Message], start: int, stop: int
    ) -> tuple[Edit, ...]:
        return (
            Edit(
                action=action,
                what=what,
                why=why,
                where=where(start, stop),
                from_tokens=round(tokens(tuple(old))),
                to_tokens=round(tokens(tuple(now))),
                start=start,
                stop=stop,
            ),
        )

    return explain


class FrameEdit(msgspec.Struct, frozen=True):
    """A change around the messages, and the frame before it."""

    edit: Edit
    before: BodyFrame


class Draft(msgspec.Struct, frozen=True):
    """A request between its asked and its sent form."""

    asked: Conversation
    """The client's request."""
    now: Conversation
    origins: Origins
    known: int = 0
    """Number of messages in `now` that were sent before."""
    frame_edits: tuple[FrameEdit, ...] = ()
    edits: tuple[Edit, ...] = ()
    """Edits of this request; earlier ones are kept with their messages."""
    decisions: tuple[PlanEntry, ...] = ()
    """Decisions of this time that led to no edit, such as to keep a long result whole."""

    @property
    def sent_before(self) -> Conversation:
        """The messages that were sent before, with the notes that are kept on them."""
        extends = self.now.extends
        is_complete = len(extends) == self.known
        return self.now.with_messages(extends if is_complete else self.now.messages[: self.known])

    def with_messages(self, messages: tuple[Message, ...], *edits: Edit) -> Draft:
        """Return the request with messages that have their replacements noted."""
        shared = common_prefix(self.now.messages, messages)
        earlier, extends = self.origins[:shared], self.now.extends
        added = origins_of(messages[shared:], earlier[-1][1] if earlier else 0)
        return msgspec.structs.replace(
            self,
            now=self.now.with_messages(messages, extends if shared >= len(extends) else ()),
            origins=joined(earlier, added),
            edits=self.edits + edits,
        )

    def with_decisions(self, decisions: Sequence[PlanEntry]) -> Draft:
        """Return the request with more decisions on record."""
        if not decisions:
            return self
        return msgspec.structs.replace(self, decisions=(*self.decisions, *decisions))

    def with_frame(self, changed: Conversation, edit: Edit, *, new: bool = True) -> Draft:
        """Return the same messages in a changed frame; the same draft if it is equal."""
        if changed.frame == self.now.frame:
            return self
        return msgspec.structs.replace(
            self,
            now=self.now.with_frame(changed.frame),
            frame_edits=(*self.frame_edits, FrameEdit(edit, self.now.frame)),
            edits=(*self.edits, edit) if new else self.edits,
        )

    def changed(self, result: Conversation, explain: Explain) -> Draft:
        """Return the request with the messages that a step made, and the edits for each difference.

        Untouched messages are the same objects. The others are paired with those they replace, and
        `explain` returns the edits.
        """
        now = list(result.messages)
        edits: list[Edit] = []
        for before, after in differences(self.now.messages, now):
            old = self.now.messages[before.start : before.stop]
            start, stop = client_range(self.origins, before)
            why = explain(old, now[after.start : after.stop], start, stop)
            edits.extend(why)
            _stand(now, old, after, why)
        return self.with_messages(tuple(now), *edits)


def differences(before: Sequence[Message], after: Sequence[Message]) -> list[tuple[range, range]]:
    """Return where two lists differ, as ranges of both; equal messages are the same objects."""
    places = {id(message): n for n, message in enumerate(before)}
    gaps: list[tuple[range, range]] = []
    old = new = 0
    for n, message in enumerate([*after, None]):
        place = len(before) if message is None else places.get(id(message), -1)
        if place < old:
            continue  # a new message
        if (old, new) != (place, n):
            gaps.append((range(old, place), range(new, n)))
        old, new = place + 1, n + 1
    return gaps


def _stand(
    now: list[Message], old: Sequence[Message], place: range, edits: tuple[Edit, ...]
) -> None:
    """Note which old messages each new one replaces; without a new one, a neighbour replaces them.

    Lists of equal length are paired. Otherwise the last two are paired if their roles are equal
    (the message after an answer was only extended), and the first new one replaces the others.
    """
    new = [now[n] for n in place]
    if not new:
        _absorb(now, old, place.start, edits)
        return
    shares: list[tuple[Message, ...]]
    if len(old) == len(new):
        shares = [(message,) for message in old]
    else:
        paired = len(old) > 1 and len(new) > 1 and old[-1].role == new[-1].role
        last: list[tuple[Message, ...]] = [(old[-1],)] if paired else []
        first = old[: len(old) - len(last)]
        shares = [tuple(first), *[()] * (len(new) - 1 - len(last)), *last]
    for n, message, share in zip(place, new, shares, strict=True):
        now[n] = standing_for(message, share, edits)


def _absorb(
    now: list[Message], old: Sequence[Message], place: int, edits: tuple[Edit, ...]
) -> None:
    """Note removed messages on the message after the gap, or else on the one before it."""
    if place < len(now):
        now[place] = standing_for(copied(now[place]), (*old, now[place]), edits, own=len(old))
    elif now:
        now[-1] = standing_for(copied(now[-1]), (now[-1], *old), edits)


def copied(message: Message) -> Message:
    """Return a separate message with the same bytes, so that it can replace more messages."""
    copy = Message(message.window, message.role, DIALECTS[message.dialect])
    MARK.carry(message, copy)
    return copy


def standing_for(
    message: Message,
    old: Sequence[Message],
    edits: tuple[Edit, ...],
    refs: tuple[str, ...] = (),
    *,
    own: int = 0,
) -> Message:
    """Note which messages a message replaces; these may be replacements themselves.

    `own` is its own index among them, if others were removed beside it.
    """
    place = sum(len(originals_of(replaced)) for replaced in old[:own])
    replacement = REPLACEMENT.get(old[own]) if own < len(old) else None
    if replacement is not None:
        place = ADDED if replacement.is_added else place + replacement.own
    REPLACEMENT.put(
        message,
        Replacement(
            tuple(original for replaced in old for original in originals_of(replaced)),
            tuple(edit for replaced in old for edit in edits_of(replaced)) + edits,
            tuple(ref for replaced in old for ref in refs_of(replaced)) + refs,
            None if replacement is None else replacement.fold,
            place,
        ),
    )
    return message


def origins_of(messages: Sequence[Message], stop: int = 0) -> Origins:
    """Return the range of the client's messages that each message replaces, from `stop` on."""
    origins = []
    for message in messages:
        start, stop = stop, stop + len(originals_of(message))
        origins.append((start, stop))
    return tuple(origins)


def client_range(origins: Origins, place: range) -> tuple[int, int]:
    """Return the range of the client's messages at a place of the sent request."""
    if place:
        return origins[place.start][0], origins[place.stop - 1][1]
    behind = origins[-1][1] if origins else 0
    at = origins[place.start][0] if place.start < len(origins) else behind
    return at, at


def where(start: int, stop: int) -> str:
    """The client's messages in words."""
    if stop <= start:
        return f"before message {start}"
    return f"message {start}" if stop - start == 1 else f"messages {start} to {stop - 1}"
