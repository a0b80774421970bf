"""The result of fitting, and the state that the next request needs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.fitting.draft import FrameEdit, Origins, origins_of
from holdfast.fitting.reads import PlanEntry, entry_of
from holdfast.store.records import Content, Edit
from holdfast.tokens import TokenCount
from holdfast.tokens.counter import NOT_RENDERED
from holdfast.trim.in_place import WHY as IN_PLACE
from holdfast.trim.provenance import REPLACEMENT, Fold, Told, fold_of
from holdfast.wire import Conversation, Message
from holdfast.wire.message import MessageWindow
from holdfast.wire.prefix_values import PrefixNote

BY_ENDS = "cited a tool result by its ends"
"""Words of the edit for a content that could not be read in time or within its memory limit."""


class FitState(msgspec.Struct, frozen=True):
    """The asked and the sent form of the last request; pass it back with the next one.

    The sent messages keep their edits: see trim/provenance.py.
    """

    asked: Conversation
    """The conversation as the client sent it."""
    sent: Conversation
    """The conversation that was sent."""
    origins: Origins
    frame_edits: tuple[FrameEdit, ...] = ()
    """Changes around the messages."""
    floor: int = 0
    """Tokens after the last fold: the next fold waits until there is enough to gain."""
    refs: bool = False
    """Whether the sent request shows a ref."""
    untold: tuple[str, ...] = ()
    """Refs of the parts of sent digests without a quoted summary of a model."""
    told: Told = {}
    """The finished summaries. They are recorded with one request and used by the next one that
    folds anyway, so that a sent request follows from the record alone: the time at which the queue
    finished has no effect."""

    @property
    def awaited(self) -> tuple[str, ...]:
        """Refs of the parts whose summary is not there yet."""
        return tuple(ref for ref in self.untold if ref not in self.told)

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The sent digests, each with the messages it replaces."""
        folds = map(fold_of, self.sent.messages)
        return tuple(fold for fold in folds if fold is not None)

    @property
    def held_bytes(self) -> int:
        """Approximate bytes of memory."""
        bodies = len(self.asked.source or b"") + len(self.sent.written or b"")
        return bodies + _weight(self.asked, _ASKED) + _weight(self.sent, _SENT)

    @property
    def _as_asked(self) -> bool:
        return self.sent.messages is self.asked.messages

    def let_go(self) -> None:
        """Forget the texts of asked messages that citations replaced in the sent request.

        Unchanged messages of the last request were handled then.
        """
        went_on = self._as_asked or bool(self.asked.extends and self.sent.extends)
        messages = added(self.sent) if went_on else self.sent.messages
        for message in messages:
            message.settle()
        if self._as_asked:
            return
        remaining = set(map(id, messages))
        for message in added(self.asked) if went_on else self.asked.messages:
            if id(message) not in remaining:
                message.let_texts_go()

    def __repr__(self) -> str:
        return f"<FitState, {len(self.asked.messages)} messages, {len(self.folds)} folds>"


def untold_in(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the refs of the parts of digests without a model's summary, in order."""
    folds = (fold for fold in map(fold_of, messages) if fold is not None)
    return tuple(part.ref_id for fold in folds for part in fold.parts if not part.told)


def added(conversation: Conversation) -> tuple[Message, ...]:
    """Return the messages that the previous request did not have."""
    return conversation.messages[len(conversation.extends) :]


def _weight(conversation: Conversation, running: PrefixNote[int]) -> int:
    """Return the bytes that messages use besides the body they were parsed from.

    Messages of the last request use the same as when this request arrived: all unneeded texts were
    released by then.
    """
    settled = running.over(conversation.with_messages(conversation.extends))
    return running.add(settled, added(conversation))


def _asked_bytes(weight: int, messages: Sequence[Message]) -> int:
    for message in messages:
        own = 0 if isinstance(message.window, MessageWindow) else message.size
        weight += own + message.parsed_bytes
    return weight


def _own_bytes(weight: int, messages: Sequence[Message]) -> int:
    """Add the bytes of sent messages that are not the client's own."""
    return _asked_bytes(weight, [m for m in messages if REPLACEMENT.get(m) is not None])


_ASKED: PrefixNote[int] = PrefixNote("asked bytes", 0, _asked_bytes)
_SENT: PrefixNote[int] = PrefixNote("sent bytes", 0, _own_bytes)


class Continuation(msgspec.Struct, frozen=True):
    """How a request begins like the last one of its session that a provider answered."""

    asked: int = 0
    """How many of the asked messages are the same."""
    sent: int = 0
    """How many of the sent messages are the same: the provider's cache may hold these."""
    broken: bool = False
    """Whether an edit changed the sent messages where the asked ones are the same."""
    sent_at: float = 0.0
    idle_seconds: float = 0.0
    """Time since that request was sent."""


class Fitted(msgspec.Struct, frozen=True):
    """A request that fits."""

    body: bytes
    """The bytes to send."""
    count: TokenCount
    limit: int
    edits: tuple[Edit, ...]
    """Edits of this request with their reasons."""
    state: FitState
    contents: tuple[Content, ...] = ()
    """Removed originals, which must be in a store before the body is sent. Those that a session has
    stored are without their bytes."""
    asked_count: TokenCount | None = None
    """The count of the asked request; None if it was sent unchanged."""
    unclaimed: int = 0
    """Tokens of the asked request that the client would not have sent without Holdfast: no saving
    is claimed for them."""
    final: bool = False
    """Whether the model was asked to come to an end."""
    decisions: tuple[PlanEntry, ...] = ()
    """Decisions that led to no edit, such as to keep a long result whole."""
    continuation: Continuation | None = None
    """How it continues its session; None if no session knows."""

    @property
    def tokens(self) -> int:
        """Input tokens of the body."""
        return self.count.tokens

    @property
    def untouched(self) -> int:
        """Input tokens of the request as the client would have sent it without us.

        The difference to `tokens` is that of the counts before calibration: two requests are
        corrected by different amounts, and that is no saving.
        """
        asked_count = self.asked_count or self.count
        return max(0, self.tokens + asked_count.plain - self.unclaimed - self.count.plain)

    @property
    def plan(self) -> tuple[PlanEntry, ...]:
        """All decisions about the request with their reasons: edits, and results that stay."""
        return (*map(entry_of, self.edits), *self.decisions)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user."""
        actions = {edit.action for edit in self.edits}
        texts = []
        if any(edit.why == IN_PLACE for edit in self.edits):
            texts.append("Older text was left out to fit: the model has no tool that could open it")
        elif actions & {"fold", "shorten", "drop"}:
            texts.append("Context trimmed due to token limit")
        if any(edit.what == BY_ENDS for edit in self.edits):
            texts.append("A tool result could not be read in time: only its ends are shown")
        if "repair" in actions:
            texts.append("The request was repaired: its provider would have refused it")
        if "withhold" in actions:
            texts.append("Tools were withheld, for nothing else could make room")
        if self.count.note.startswith(NOT_RENDERED):
            texts.append("Tokens were estimated by length, after an internal error")
        if self.final:
            texts.append("The context is full: the model was asked to come to an end")
        return tuple(texts)

    def __repr__(self) -> str:
        return f"<Fitted, {self.tokens} of {self.limit} tokens, {len(self.edits)} edits>"


def unfold(state: FitState, fold: Fold) -> FitState:
    """Return the state with a digest's messages in its place, for the next request."""
    messages: list[Message] = []
    for message, (start, stop) in zip(state.sent.messages, state.origins, strict=True):
        if fold_of(message) == fold:
            messages.extend(state.asked.messages[start:stop])
        else:
            messages.append(message)
    conversation = state.sent.with_messages(tuple(messages))
    return msgspec.structs.replace(state, sent=conversation, origins=origins_of(messages))
