"""The record of a request: the sent bytes, and the edits from which the asked bytes are rebuilt.

record: before accounting. No other copy of the client's request is stored: a session continues
after a restart because its request can be rebuilt, byte for byte. A turn records only the
difference to the turn before, so that a long session takes the size of its messages, not the square
of their number.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.engine.heads import sharing
from holdfast.errors import DamagedContentError
from holdfast.fitting import FitState
from holdfast.fitting.cite_results import expansion_tool
from holdfast.fitting.draft import Origins, origins_of
from holdfast.fitting.state import Continuation, untold_in
from holdfast.store.records import Edit, Patch, ReplacedMessage, Trail, Turn
from holdfast.store.refs import digest
from holdfast.trim.provenance import REPLACEMENT, Fold, Replacement, names_ref, originals_of
from holdfast.wire import Conversation, Message, read
from holdfast.wire.frame import pack, uneven_gaps, unpack
from holdfast.wire.message import bytes_of, common_prefix, spans_of
from holdfast.wire.notes import SingleNote
from holdfast.wire.places import fingerprint

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

_SHA256: SingleNote[str] = SingleNote("sha256")
_LONG_PATCH = 2_000
"""Replaced bytes from this size on are stored once, not in each turn: deferred tools, for example,
are the same in all turns of a session."""
_EVENED = Edit(
    action="layout",
    what="made the white space between messages even",
    why="the request was written anew",
    where="between messages",
)


def sha256_of(message: Message) -> str:
    """The SHA-256 of a message's bytes."""
    return _SHA256.get(message) or _SHA256.put(message, digest(memoryview(message.span)))


class Line(NamedTuple):
    """A sent message, and the client's messages that it replaces, by hash."""

    sha256: str
    originals: tuple[str, ...]

    @property
    def own(self) -> bool:
        """Whether it is the client's own message."""
        return self.originals == (self.sha256,)


class Before(NamedTuple):
    """The request before, as it was written down; its messages if it was this process that did."""

    lines: tuple[Line, ...] = ()
    frame: str = ""
    """Hash of the bytes around the sent messages."""
    undone: frozenset[str] = frozenset()
    """Of what changes have replaced, where it is long."""
    asked: tuple[Message, ...] | None = None
    sent: tuple[Message, ...] | None = None
    summed: Hash | None = None
    """Over the client's body up to the end of its last message."""
    end: int = 0
    """Where that is."""


class TurnChange(NamedTuple):
    """A request as it is written down."""

    known: Before
    """The state against which the next request is compared."""
    trail: Trail
    standings: tuple[ReplacedMessage, ...]
    patches: tuple[Patch, ...]
    asked: str
    messages: dict[str, bytes | memoryview]
    """Bytes of the hashes that may be new."""
    prefix_share: float
    """Share of the bytes sent that are the beginning of the request before."""


def continued(state: FitState, before: Before) -> Continuation:
    """Return how a request begins like an earlier one, as a provider's cache compares them.

    Cache marks move with every request of Claude's clients; they are no part of the prompt.
    """
    asked_messages = _same_prompt(state.asked, before.asked)
    if asked_messages is None:
        names = [name for line in before.lines for name in line.originals]
        asked_messages = _same_names(state.asked, names)
    sent_messages = _same_prompt(state.sent, before.sent)
    if sent_messages is None:
        sent_messages = _same_names(state.sent, [line.sha256 for line in before.lines])
    is_whole = sent_messages == len(before.lines)
    return Continuation(
        asked_messages,
        sent_messages,
        broken=not is_whole and sent_messages < _lines_made_of(before, asked_messages),
    )


def _same_prompt(conversation: Conversation, before: tuple[Message, ...] | None) -> int | None:
    """Return how many messages equal those of an earlier request; None if unknown."""
    if before is None:
        return None
    shared = _same_objects(conversation, before)
    later = map(fingerprint, before[shared:])
    return shared + _shared(later, map(fingerprint, conversation.messages[shared:]))


def _lines_made_of(before: Before, asked: int) -> int:
    """Return how many sent messages replace the first `asked` messages of the client."""
    made_of = list(accumulate(len(line.originals) for line in before.lines))
    return bisect_right(made_of, asked)


def written(state: FitState, before: Before) -> TurnChange:
    """A request as the change against the one before."""
    sent_messages = state.sent.messages
    same = _same_objects(state.sent, before.sent)
    lines = before.lines[:same] + tuple(map(_line, sent_messages[same:]))
    shared = same + _shared(before.lines[same:], lines[same:])
    frame = _packed(state.sent)
    frame_name = digest(frame)
    # The session names the bytes around its last request, so that they stay stored.
    messages: dict[str, bytes | memoryview] = {}
    if frame_name != before.frame:
        messages[frame_name] = frame
    standings = []
    for n in range(shared, len(sent_messages)):
        messages[lines[n].sha256] = bytes_of(sent_messages[n])
        replacement = REPLACEMENT.get(sent_messages[n])
        if replacement is None:
            continue
        for name, original in zip(lines[n].originals, replacement.originals, strict=True):
            messages[name] = bytes_of(original)
        standings.append(
            ReplacedMessage(
                n,
                lines[n].originals,
                replacement.edits,
                replacement.refs,
                replacement.own,
                b"" if replacement.fold is None else msgspec.json.encode(replacement.fold),
            )
        )
    patches, replaced = _shortened(patches_of(state))
    messages |= {name: was for name, was in replaced.items() if name not in before.undone}
    summed, end, asked_hash = _summed(state.asked, before)
    before_now = Before(
        lines, frame_name, frozenset(replaced), state.asked.messages, sent_messages, summed, end
    )
    return TurnChange(
        before_now,
        Trail(shared, tuple(line.sha256 for line in lines[shared:]), frame_name),
        tuple(standings),
        patches,
        asked_hash,
        messages,
        _share(state.sent, _same_sent(state, before)),
    )


def _line(message: Message) -> Line:
    return Line(sha256_of(message), tuple(map(sha256_of, originals_of(message))))


def _shared(before: Iterable[object], now: Iterable[object]) -> int:
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        shared += 1
    return shared


def _summed(asked: Conversation, before: Before) -> tuple[Hash | None, int, str]:
    """Return the hash state after the last message, its place, and the SHA-256 of the whole body.

    A body that extends the previous one contains its exact bytes: only the added ones are hashed.
    """
    frame, source = asked.frame, asked.source
    if source is None:
        sums = hashlib.sha256(frame.head)
        sums.update(frame.gap.join(spans_of(asked.messages)))
        sums.update(frame.tail)
        return None, 0, sums.hexdigest()
    body = memoryview(source)
    end = len(body) - len(frame.tail)
    if before.summed is not None and asked.extends and asked.extends is before.asked:
        summed = before.summed.copy()
        summed.update(body[before.end : end])
    else:
        summed = hashlib.sha256(body[:end])
    running = summed.copy()
    running.update(body[end:])
    return summed, end, running.hexdigest()


def _packed(conversation: Conversation) -> bytes:
    """Return the bytes around the messages, with the gaps between them if they differ."""
    frame, body = conversation.frame, conversation.source
    if body is None or conversation.even:
        return pack(frame)
    spans = [memoryview(message.span) for message in conversation.messages]
    return pack(frame, uneven_gaps(frame, spans, body))


def _same_sent(state: FitState, before: Before) -> int:
    shared = _same(state.sent, before.sent)
    if shared is None:
        shared = _same_names(state.sent, [line.sha256 for line in before.lines])
    return shared


def _same(conversation: Conversation, before: tuple[Message, ...] | None) -> int | None:
    """Return how many messages equal those of the request before; None if that was released."""
    if before is None:
        return None
    shared = _same_objects(conversation, before)
    return shared + _shared(
        map(sha256_of, before[shared:]), map(sha256_of, conversation.messages[shared:])
    )


def _same_objects(conversation: Conversation, before: tuple[Message, ...] | None) -> int:
    if before is None:
        return 0
    if conversation.begins_with(before):
        return len(before)
    return common_prefix(before, conversation.messages)


def _same_names(conversation: Conversation, before: Sequence[str]) -> int:
    return _shared(before, map(sha256_of, conversation.messages))


def _share(conversation: Conversation, same: int) -> float:
    """Return the share of bytes up to the end of `same` messages, without the gaps between them."""
    frame, messages = conversation.frame, conversation.messages
    if not same:
        return 0.0
    behind = len(frame.tail) + sum(message.size for message in messages[same:])
    body = conversation.source or conversation.written
    if body is not None and conversation.even and not frame.bare:
        total = len(body) - len(frame.gap) * (len(messages) - 1)
    else:
        total = len(frame.hollow) + sum(message.size for message in messages)
    return (total - behind) / total


# --- what stands around the messages -------------------------------------------------------------


def patches_of(state: FitState) -> tuple[Patch, ...]:
    """Return the patches that undo the edits around the messages."""
    if state.sent is state.asked:
        return ()
    edits = [frame_edit.edit for frame_edit in state.frame_edits]
    frames = [*(pack(frame_edit.before) for frame_edit in state.frame_edits)]
    frames.append(pack(state.sent.frame))
    asked_frame = _packed(state.asked)
    if asked_frame != frames[0]:  # a client's gaps between messages vary; ours do not
        frames.insert(0, asked_frame)
        edits.insert(0, _EVENED)
    return tuple(map(_patch, frames, frames[1:], edits))


def _patch(before: bytes, after: bytes, edit: Edit) -> Patch:
    """The one place in which two byte strings differ."""
    most = min(len(before), len(after))
    start = _common(before, after, most)
    end = _common(before[::-1], after[::-1], most - start)
    return Patch(start, len(after) - end, before[start : len(before) - end], edit)


def _common(one: bytes, other: bytes, most: int) -> int:
    """How many of the first bytes are the same; halved, because comparing bytes is fast."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _shortened(patches: Iterable[Patch]) -> tuple[tuple[Patch, ...], dict[str, bytes]]:
    """Return the patches with hashes for long replaced bytes, and those bytes by hash."""
    short: list[Patch] = []
    replaced: dict[str, bytes] = {}
    for patch in patches:
        if len(patch.was) <= _LONG_PATCH:
            short.append(patch)
            continue
        name = digest(patch.was)
        replaced[name] = patch.was
        short.append(msgspec.structs.replace(patch, was=b"", name=name))
    return tuple(short), replaced


def unpatched(frame: bytes, patches: Iterable[Patch], stored: Mapping[str, bytes]) -> bytes:
    """Return the bytes around the messages as the client sent them."""
    for patch in reversed(tuple(patches)):
        was = stored[patch.name] if patch.name else patch.was
        frame = frame[: patch.start] + was + frame[patch.stop :]
    return frame


# --- back ----------------------------------------------------------------------------------------


class Sides(NamedTuple):
    """The sent and the asked request, by hash."""

    lines: tuple[Line, ...]
    standings: Mapping[int, ReplacedMessage]
    """By place, those of all messages that are not the client's own."""
    frame: str
    """Hash of the bytes around the sent messages."""
    patches: tuple[Patch, ...]
    asked: str
    floor: int = 0

    @property
    def client(self) -> tuple[str, ...]:
        """The client's messages."""
        return tuple(name for line in self.lines for name in line.originals)

    @property
    def sent(self) -> tuple[str, ...]:
        """The sent messages."""
        return tuple(line.sha256 for line in self.lines)

    @property
    def origins(self) -> Origins:
        """The client's messages that each sent message replaces."""
        stop = 0
        origins = []
        for line in self.lines:
            start, stop = stop, stop + len(line.originals)
            origins.append((start, stop))
        return tuple(origins)

    @property
    def names(self) -> list[str]:
        """All that must be read to have both sides whole."""
        return sorted({*self.client, *self.sent, self.frame, *self.undone})

    @property
    def undone(self) -> set[str]:
        """What changes around the messages have replaced, where it is long."""
        return {patch.name for patch in self.patches if patch.name}


def last_sides(turns: Sequence[Turn]) -> Sides | None:
    """Both sides of the last request, from all turns up to it; None if it was not written down."""
    lines: list[Line] = []
    standings: dict[int, ReplacedMessage] = {}
    for turn in turns:
        if turn.sent is None or not turn.asked:
            return None
        shared = turn.sent.shared
        standings = {at: standing for at, standing in standings.items() if at < shared}
        standings.update((standing.at, standing) for standing in turn.standings)
        lines[shared:] = [
            Line(name, standings[n].originals if n in standings else (name,))
            for n, name in enumerate(turn.sent.added, shared)
        ]
    last = turns[-1] if turns else None
    if last is None or last.sent is None:
        return None
    return Sides(tuple(lines), standings, last.sent.frame, last.patches, last.asked, last.floor)


def last_fitted(turns: Sequence[Turn]) -> Sides | None:
    """Return both sides of the last fitted request; read-only requests are skipped."""
    fitted = [n for n, turn in enumerate(turns, 1) if not turn.read_only]
    return last_sides(turns[: fitted[-1]]) if fitted else None


def asked_body(sides: Sides, stored: Mapping[str, bytes]) -> bytes:
    """Return the client's request, byte for byte; DamagedContentError if a part is missing."""
    if not stored.keys() >= {sides.frame, *sides.client, *sides.undone}:
        raise DamagedContentError(
            "the request cannot be rebuilt: not all of it was stored, or not all is left",
            where="messages",
            fix="A privacy policy that refuses, or `holdfast store gc`, leaves such gaps.",
        )
    around = unpack(unpatched(stored[sides.frame], sides.patches, stored))
    body = around.around([stored[name] for name in sides.client])
    if digest(body) != sides.asked:
        raise DamagedContentError(
            "what was rebuilt is not the request that came",
            where="asked",
            fix="Please report it: a change was made that is not on record.",
        )
    return body


def held_in(state: FitState | None) -> dict[str, bytes]:
    """The messages of both sides of a request, by their hashes."""
    if state is None:
        return {}
    messages = (*state.asked.messages, *state.sent.messages)
    return {sha256_of(message): bytes(message.span) for message in messages}


def state_of(
    dialect: str, sides: Sides, stored: Mapping[str, bytes], before: FitState | None = None
) -> FitState | None:
    """Return the state with which fitting continues after a restart; None if a part is missing.

    Messages of the request `before`, at the same place, are reused with their notes: if another
    process answered a turn in between, only that turn is new.
    """
    if not stored.keys() >= set(sides.names):
        return None
    asked_before, sent_before = (before.asked, before.sent) if before else (None, None)
    asked_conversation = read(asked_body(sides, stored), dialect, previous=asked_before)
    asked_conversation = sharing(asked_conversation, asked_before)
    around = unpack(stored[sides.frame])
    sent_body = around.around([stored[name] for name in sides.sent])
    sent_conversation = sharing(read(sent_body, dialect, previous=sent_before), sent_before)
    messages = []
    start = 0
    for n, (line, message) in enumerate(zip(sides.lines, sent_conversation.messages, strict=True)):
        originals = asked_conversation.messages[start : start + len(line.originals)]
        start += len(originals)
        standing = sides.standings.get(n)
        if standing is None:
            messages.append(originals[0])
            continue
        fold = msgspec.json.decode(standing.digest, type=Fold) if standing.digest else None
        REPLACEMENT.put(
            message, Replacement(originals, standing.edits, standing.refs, fold, standing.own)
        )
        messages.append(message)
    complete = sent_conversation.with_messages(tuple(messages))
    origins, untold = origins_of(messages), untold_in(messages)
    # A digest has a ref also where the client has no tools, and does not show it there.
    refs = names_ref(complete) and expansion_tool(complete)[1]
    return FitState(
        asked_conversation, complete, origins, floor=sides.floor, refs=refs, untold=untold
    )
