"""A conversation in pieces: exchanges with their tokens, and what may be done to each.

pieces: after anchors; strategies choose among these, nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.tokens import TokenCount
from holdfast.trim.anchors import Anchor
from holdfast.wire import Conversation, Message

CITED = "cited a tool result"
"""What the cut of a citation on arrival says it did; all others are trims."""


class Fold(msgspec.Struct, frozen=True):
    """What a digest stands for."""

    start: int
    """Index of the first message it replaced, in the conversation as the client sends it."""
    stop: int
    """Index behind the last one."""
    messages: int
    """How many messages it replaced."""
    tokens: int
    """What they cost."""
    tools: tuple[tuple[str, int], ...] = ()
    questions: tuple[str, ...] = ()
    summary: str = ""
    """What a model said about them; empty if none was asked."""
    ref_id: str = ""
    """Where they can be opened; empty if they are only in the client's own history."""
    refs: tuple[str, ...] = ()
    """What they cite themselves."""

    def __repr__(self) -> str:
        return f"<Fold of messages {self.start} to {self.stop - 1}, {self.tokens} tokens>"


class Piece(msgspec.Struct, frozen=True):
    """An exchange, as trimming sees it."""

    messages: tuple[Message, ...]
    start: int
    """Where it stands in the conversation as the client sends it."""
    stop: int
    tokens: float
    kind: str
    anchored: bool = False
    fold: Fold | None = None
    """Set if the piece is a digest that an earlier fold left."""


class Cut(msgspec.Struct, frozen=True):
    """One thing that a trim did."""

    what: str
    why: str
    where: str
    """In the client's units: `messages 3 to 42`."""
    from_tokens: int
    to_tokens: int
    ref_id: str = ""
    """Where the original can be opened; empty if it is only in the client's own history."""


def pieces_of(
    conversation: Conversation,
    counted: TokenCount,
    anchors: Sequence[Anchor],
    origins: Sequence[tuple[int, int]],
) -> list[Piece]:
    """Cut a conversation into its exchanges; `origins` says where each message came from."""
    kept = {anchor.index for anchor in anchors}
    each = counted.message_tokens or _by_size(conversation, counted.tokens)
    made = []
    for exchange in conversation.exchanges:
        start, stop = exchange.start, exchange.stop
        made.append(
            Piece(
                exchange.messages,
                origins[start][0],
                origins[stop - 1][1],
                sum(each[start:stop]),
                exchange.kind,
                not kept.isdisjoint(range(start, stop)),
                exchange.messages[0].memo.get("fold"),
            )
        )
    return made


def _by_size(conversation: Conversation, tokens: int) -> list[float]:
    """A counter of the user's own counts requests, not messages: each has its share of bytes."""
    sizes = [len(message.raw) for message in conversation.messages]
    return [tokens * size / max(1, sum(sizes)) for size in sizes]


class Bench(msgspec.Struct, frozen=True):
    """What a strategy works with, beside the pieces."""

    dialect: str
    """Of the conversation."""
    measure: Callable[[Piece], float]
    """Tokens of a piece that was made anew."""
    keep: Callable[[str, bytes, float], str] = lambda _kind, _original, _tokens: ""
    """(kind, original, its tokens) → the ref under which it can be opened; empty if it cannot."""
