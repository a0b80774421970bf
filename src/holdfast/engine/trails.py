"""Which conversation a request belongs to, and how its turns are written down.

trails: the first step of the engine. Clients send their whole history with each request, and
seldom say which conversation it is: it is known by its beginning. A turn is written as what is
new in it, so that a long session costs as much as its messages, not their number squared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.fitting import FitState
from holdfast.fitting.arrival import names_ref
from holdfast.fitting.following import unmarked
from holdfast.fitting.state import Origins
from holdfast.store.records import Trail, Turn
from holdfast.store.refs import REF, digest
from holdfast.trim.standing import STAND, Fold, Stand
from holdfast.wire import DIALECTS, Conversation, Message, read
from holdfast.wire.notes import Note
from holdfast.wire.strict import encode, splice

_FINGERPRINT: Note[bytes] = Note("fingerprint")
_SHA256: Note[str] = Note("sha256")

MOST_HEADS = 200
"""How far back a request is looked for: a client seldom adds more messages at once."""


def heads(messages: Sequence[Message]) -> list[str]:
    """A name for each beginning of a conversation, the longest first; cache marks do not count."""
    running = hashlib.sha256(b"".join(map(_fingerprint, messages[:-MOST_HEADS])))
    names = []
    for message in messages[-MOST_HEADS:]:
        running.update(_fingerprint(message))
        names.append(running.hexdigest())
    return names[::-1]


def head_of(messages: Sequence[Message]) -> str:
    """The name of a whole conversation; empty if there is nothing in it."""
    prints = b"".join(map(_fingerprint, messages))
    return hashlib.sha256(prints).hexdigest() if prints else ""


def _fingerprint(message: Message) -> bytes:
    fingerprint = _FINGERPRINT.get(message)
    if fingerprint is None:
        span = bytes(message.span)
        if b"cache_control" in span:
            span = encode(unmarked(message.value))
        fingerprint = _FINGERPRINT.put(message, hashlib.sha256(span).digest())
    return fingerprint


def sharing(conversation: Conversation, before: Conversation | None) -> Conversation:
    """The same request, made of the messages known from before where their bytes are equal.

    What is known about a message is kept with it: its tokens are not counted again.
    """
    if before is None or before.dialect != conversation.dialect:
        return conversation
    messages = list(conversation.messages)
    for n, (old, new) in enumerate(zip(before.messages, messages, strict=False)):
        if old is not new and bytes(old.span) == bytes(new.span):
            messages[n] = old
    for message in messages[len(before.messages) :]:
        message.span = bytes(message.span)  # a window would keep the whole body in memory
    return Conversation(
        DIALECTS[conversation.dialect],
        conversation.frame,
        tuple(messages),
        source=conversation.source,
        body=conversation.rest,
    )


def hashes(messages: Sequence[Message]) -> tuple[str, ...]:
    """The SHA-256 of each message's bytes."""
    return tuple(_sha256(message) for message in messages)


def _sha256(message: Message) -> str:
    return _SHA256.get(message) or _SHA256.put(message, digest(bytes(message.span)))


def trail(
    conversation: Conversation, before: Sequence[str]
) -> tuple[Trail, tuple[str, ...], dict[str, bytes]]:
    """A request as the change against the one before: the trail, all hashes, and what is new."""
    now = hashes(conversation.messages)
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        shared += 1
    frame = conversation.frame.hollow
    added = {
        name: bytes(message.span)
        for name, message in zip(now[shared:], conversation.messages[shared:], strict=True)
    }
    made = Trail(shared, now[shared:], digest(frame))
    return made, now, {**added, made.frame: frame}


def followed_trails(trails: Sequence[Trail]) -> tuple[str, ...]:
    """The hashes of the last request's messages, from all trails up to it."""
    known: list[str] = []
    for one in trails:
        known[one.shared :] = one.added
    return tuple(known)


class Sides(NamedTuple):
    """A request as the client sent it and as it went out, in hashes."""

    client: tuple[str, ...]
    client_frame: str
    sent: tuple[str, ...]
    sent_frame: str
    origins: Origins


def last_sides(turns: Sequence[Turn]) -> Sides | None:
    """Both sides of the last request, from all turns up to it; None if it was not written down."""
    clients = [turn.client for turn in turns if turn.client is not None]
    sents = [turn.sent for turn in turns if turn.sent is not None]
    if not turns or not len(clients) == len(sents) == len(turns):
        return None
    origins: list[tuple[int, int]] = []
    for turn, sent in zip(turns, sents, strict=True):
        origins[sent.shared :] = turn.origins
    return Sides(
        followed_trails(clients),
        clients[-1].frame,
        followed_trails(sents),
        sents[-1].frame,
        tuple(origins),
    )


def rebuilt(dialect: str, last: Sides, stored: Mapping[str, bytes]) -> FitState | None:
    """What fitting needs to go on after a restart; None if something is missing."""
    needed = {*last.client, last.client_frame, *last.sent, last.sent_frame}
    if not needed <= stored.keys() or len(last.origins) != len(last.sent):
        return None
    source = _put_together(dialect, last.client, stored[last.client_frame], stored)
    out = _put_together(dialect, last.sent, stored[last.sent_frame], stored)
    messages = tuple(
        _as_it_was(message, start, source.messages[start:stop])
        for message, (start, stop) in zip(out.messages, last.origins, strict=True)
    )
    return FitState(source, out.with_messages(messages), last.origins, 0, names_ref(messages))


def _put_together(
    dialect: str, names: Sequence[str], frame: bytes, stored: Mapping[str, bytes]
) -> Conversation:
    around = read(frame, dialect).frame
    spans = b",".join([stored[name] for name in names])
    listed = spans if around.bare else b"[" + spans + b"]"
    return read(splice(frame, around.place, listed), dialect)


def _as_it_was(message: Message, start: int, originals: Sequence[Message]) -> Message:
    """A message that went out, with what was known about it."""
    if not originals or bytes(originals[0].span) == bytes(message.span):
        return originals[0] if originals else message
    refs = _refs(message)
    if len(originals) == 1 and originals[0].results:  # of these only results are made shorter
        STAND.put(message, Stand((originals[0],), refs=refs))
        return message
    fold = Fold(start, start + len(originals), len(originals), 0, ref_id="".join(refs[:1]))
    STAND.put(message, Stand(tuple(originals), refs=refs, fold=fold))
    return message


def _refs(message: Message) -> tuple[str, ...]:
    text = bytes(message.span).decode("utf-8", "replace")
    return tuple(dict.fromkeys(found[0] for found in REF.finditer(text)))


def prefix_share(sent: Conversation, shared: int) -> float:
    """Share of the bytes of a request that are the beginning of the one before."""
    sizes = [len(bytes(message.span)) for message in sent.messages]
    total = len(sent.frame.hollow) + sum(sizes)
    return (len(sent.frame.head) + sum(sizes[:shared])) / total if shared else 0.0
