"""A conversation in pieces: exchanges with their tokens, and their allowed edits.

Strategies choose among these. Folded neighbouring messages are stored as a JSON list; the search
for a fold tries many runs that are never stored, of messages that may be a whole body long, so the
name of a run is known without joining its bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec

from holdfast.store.refs import digest, ref_id
from holdfast.tokens import TokenCount
from holdfast.trim.anchors import Anchor, asks
from holdfast.trim.documents import DocumentCitations
from holdfast.trim.provenance import Fold, Told, fold_of
from holdfast.wire import Conversation, Message
from holdfast.wire.exchanges import stays
from holdfast.wire.message import spans_of

_AT_ONCE = 32
"""Messages whose bytes are joined at once to be hashed."""


def listed(messages: Sequence[Message]) -> bytes:
    """Messages as a JSON list, which is how folded ones are stored."""
    return b"[" + b",".join(spans_of(messages)) + b"]"


def run_digest(messages: Sequence[Message]) -> str:
    """The SHA-256 of that list."""
    spans = list(spans_of(messages))
    summed = hashlib.sha256(b"[")
    # Some at a time: all at once would be held twice, and one by one many runs take many calls.
    for start in range(0, len(spans), _AT_ONCE):
        summed.update(b"," * (start > 0) + b",".join(spans[start : start + _AT_ONCE]))
    summed.update(b"]")
    return summed.hexdigest()


class Piece(msgspec.Struct, frozen=True):
    """An exchange, as trimming sees it."""

    messages: tuple[Message, ...]
    start: int
    """Its place in the client's conversation."""
    stop: int
    tokens: float
    kind: str
    anchored: bool = False
    fold: Fold | None = None
    """Set if the piece is a digest."""
    anchor: Anchor | None = None
    """The most important of the anchors in it."""

    @property
    def priority(self) -> int:
        """How important it is: that of its anchor, and below all anchors if it has none."""
        return -1 if self.anchor is None else self.anchor.priority

    @property
    def asks(self) -> bool:
        """Return whether it contains a user's question, with which a turn begins."""
        return any(map(asks, self.messages))


def pieces_of(
    conversation: Conversation,
    counted: TokenCount,
    anchors: Sequence[Anchor],
    origins: Sequence[tuple[int, int]],
) -> list[Piece]:
    """Cut a conversation into its exchanges; `origins` has the source of each message."""
    anchor_at = {anchor.index: anchor for anchor in anchors}
    each = counted.message_tokens or _by_size(conversation, counted.tokens)
    pieces = []
    for exchange in conversation.exchanges:
        start, stop = exchange.start, exchange.stop
        inner_anchors = [anchor_at[n] for n in range(start, stop) if n in anchor_at]
        pieces.append(
            Piece(
                exchange.messages,
                origins[start][0],
                origins[stop - 1][1],
                sum(each[start:stop]),
                exchange.kind,
                # What acts by its place is no anchor of anyone's, and yet may not go.
                bool(inner_anchors) or any(map(stays, exchange.messages)),
                fold_of(exchange.messages[0]),
                max(inner_anchors, key=lambda anchor: anchor.priority) if inner_anchors else None,
            )
        )
    return pieces


def _by_size(conversation: Conversation, tokens: int) -> list[float]:
    """A counter of the user's own counts requests, not messages: each has its share of bytes."""
    sizes = [len(message.raw) for message in conversation.messages]
    return [tokens * size / max(1, sum(sizes)) for size in sizes]


def _name(kind: str, original: bytes, _tokens: float) -> str:
    """The ref that a store would give: it follows from the content."""
    return ref_id(kind, digest(original))


def _name_run(originals: Sequence[Message], _tokens: float) -> str:
    return ref_id("fold", run_digest(originals))


class Bench(msgspec.Struct, frozen=True):
    """The tools of a strategy, besides the pieces."""

    dialect: str
    """Of the conversation."""
    measure: Callable[[Piece], float]
    """Returns the tokens of a new piece."""
    keep: Callable[[str, bytes, float], str] = _name
    """(kind, original, its tokens) → the ref under which it can be opened. Empty if it may not be
    stored: then it may not leave either."""
    keep_run: Callable[[Sequence[Message], float], str] = _name_run
    """(messages of the client's, their tokens) → the ref of the list of them; else as `keep`."""
    opener: str = ""
    """The tool with which the model opens refs in this request; without one none are shown."""
    documents: DocumentCitations | None = None
    """Citations of pasted documents; None where nothing is cited."""
    told: Told = {}
    """Models' summaries so far of parts that were folded before."""
    summary_tokens: int = 0
    """Tokens of a digest for a model's summary, besides its extracts. They are reserved with or
    without a summary, because the amount of folding must not depend on it. 0: no model is used."""
