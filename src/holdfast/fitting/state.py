"""What fitting gives, and what it wants back with the next request.

state: after draft.
"""

from __future__ import annotations

import msgspec

from holdfast.fitting.draft import FrameEdit, Origins, origins_of
from holdfast.store.records import Content, Edit
from holdfast.tokens import TokenCount
from holdfast.trim.standing import Fold, fold_of
from holdfast.wire import Conversation, Message

BY_ENDS = "cited a tool result by its ends"
"""What an edit says of a content that could not be read in time, or within the memory for it."""


class FitState(msgspec.Struct, frozen=True):
    """The two faces of the last request, and what stands between them; pass it back with the next.

    Which edits stand is known by the messages that were sent: see trim/standing.py.
    """

    asked: Conversation
    """The conversation as the client sent it."""
    sent: Conversation
    """The conversation as it went out."""
    origins: Origins
    frame_edits: tuple[FrameEdit, ...] = ()
    """What was changed around the messages."""
    floor: int = 0
    """What the last fold came down to: the next one waits until there is something to gain."""
    refs: bool = False
    """Whether a ref stands in what was sent."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The digests in what was sent, and what each stands for."""
        folds = map(fold_of, self.sent.messages)
        return tuple(fold for fold in folds if fold is not None)

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        asked = {id(message) for message in self.asked.messages}
        only_sent = (message for message in self.sent.messages if id(message) not in asked)
        own = sum(len(memoryview(one.span)) + one.parsed_bytes for one in only_sent)
        return self.asked.held_bytes + own

    def let_go(self) -> None:
        """Forget the texts of what was asked and never sent: citations stand in their place."""
        sent = {id(message) for message in self.sent.messages}
        for message in self.asked.messages:
            if id(message) not in sent:
                message.let_go()

    def __repr__(self) -> str:
        return f"<FitState, {len(self.asked.messages)} messages, {len(self.folds)} folds>"


class Fitted(msgspec.Struct, frozen=True):
    """A request that fits."""

    body: bytes
    """Ready to send."""
    count: TokenCount
    limit: int
    edits: tuple[Edit, ...]
    """What was done this time, and why; empty if nothing was."""
    state: FitState
    contents: tuple[Content, ...] = ()
    """Originals that left the request: they must be in a store before the body is sent."""
    untouched: int = 0
    """Input tokens of the request as the client asked it."""
    final: bool = False
    """Whether the model was asked to come to an end."""

    @property
    def tokens(self) -> int:
        """Input tokens of the body."""
        return self.count.tokens

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to tell the user."""
        actions = {edit.action for edit in self.edits}
        told = []
        if actions & {"fold", "shorten", "drop"}:
            told.append("Context trimmed due to token limit")
        if any(edit.what == BY_ENDS for edit in self.edits):
            told.append("A tool result could not be read in time: only its ends are shown")
        if "repair" in actions:
            told.append("The request was repaired: its provider would have refused it")
        if "withhold" in actions:
            told.append("Tools were withheld, for nothing else could make room")
        if self.final:
            told.append("The context is full: the model was asked to come to an end")
        return tuple(told)

    def __repr__(self) -> str:
        return f"<Fitted, {self.tokens} of {self.limit} tokens, {len(self.edits)} edits>"


def unfold(state: FitState, fold: Fold) -> FitState:
    """Put back what a digest stands for, for the next request."""
    messages: list[Message] = []
    for message, (start, stop) in zip(state.sent.messages, state.origins, strict=True):
        if fold_of(message) == fold:
            messages.extend(state.asked.messages[start:stop])
        else:
            messages.append(message)
    sent = state.sent.with_messages(tuple(messages))
    return msgspec.structs.replace(state, sent=sent, origins=origins_of(messages))
