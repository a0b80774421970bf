"""A conversation in pieces: exchanges with their tokens, and what may be done to each.

pieces: after anchors; strategies choose among these, nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.tokens import TokenCount
from holdfast.trim.anchors import Anchor
from holdfast.trim.standing import Fold, fold_of
from holdfast.wire import Conversation, Message


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
                fold_of(exchange.messages[0]),
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
