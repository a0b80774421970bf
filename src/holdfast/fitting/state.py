"""What fitting gives, and what it wants back with the next request.

state: the first word of fitting.
"""

from __future__ import annotations

import msgspec

from holdfast.store.records import Content, Edit
from holdfast.tokens import TokenCount
from holdfast.trim.standing import Fold, fold_of
from holdfast.wire import Conversation, Message

Origins = tuple[tuple[int, int], ...]
"""For each message that went out, the client's messages that it stands for."""


class FitState(msgspec.Struct, frozen=True):
    """What was sent last time; pass it back with the next request."""

    source: Conversation
    """The conversation as the client sent it."""
    sent: Conversation
    """The conversation as it went out."""
    origins: Origins
    floor: int = 0
    """What the last fold came down to: the next one waits until there is something to gain."""
    refs: bool = False
    """Whether a ref stands in what was sent."""
    asked: Conversation | None = None
    """What the client sent, if `source` is that after a repair."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The digests in what was sent, and what each stands for."""
        folds = map(fold_of, self.sent.messages)
        return tuple(fold for fold in folds if fold is not None)

    def __repr__(self) -> str:
        return f"<FitState, {len(self.source.messages)} messages, {len(self.folds)} folds>"


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

    @property
    def tokens(self) -> int:
        """Input tokens of the body."""
        return self.count.tokens

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to tell the user."""
        trimmed = any(edit.action != "cite" for edit in self.edits)
        return ("Context trimmed due to token limit",) if trimmed else ()

    def __repr__(self) -> str:
        return f"<Fitted, {self.tokens} of {self.limit} tokens, {len(self.edits)} edits>"


def one_by_one(start: int, stop: int) -> Origins:
    """The origins of messages that stand for themselves."""
    return tuple((n, n + 1) for n in range(start, stop))


def unfold(state: FitState, fold: Fold) -> FitState:
    """Put back what a digest stands for, for the next request."""
    messages: list[Message] = []
    origins: list[tuple[int, int]] = []
    for message, origin in zip(state.sent.messages, state.origins, strict=True):
        if fold_of(message) == fold:
            messages.extend(state.source.messages[fold.start : fold.stop])
            origins.extend(one_by_one(fold.start, fold.stop))
        else:
            messages.append(message)
            origins.append(origin)
    sent = state.sent.with_messages(tuple(messages))
    return msgspec.structs.replace(state, sent=sent, origins=tuple(origins))
