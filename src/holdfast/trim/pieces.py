"""A conversation in pieces: exchanges with their tokens, and what may be done to each.

pieces: after anchors; strategies choose among these, nothing here decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.tokens import TokenCount
from holdfast.trim.anchors import Anchor, asks
from holdfast.wire import DIALECTS, Conversation, Entry, Message, Text, ToolCall, ToolResult
from holdfast.wire.strict import encode, splice

_QUOTED = 80
_MOST_QUOTES = 3


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


def fold(
    pieces: Sequence[Piece], conversation: Conversation, *, summary: str = "", terse: bool = False
) -> Piece:
    """Put one digest in the place of neighbouring pieces; a terse one is a line.

    Without a new summary, those of the digests among the pieces are kept.
    """
    tools: Counter[str] = Counter()
    questions: list[str] = []
    summaries: list[str] = []
    messages = 0
    tokens = 0.0
    for piece in pieces:
        if piece.fold is not None:
            tools.update(dict(piece.fold.tools))
            questions.extend(piece.fold.questions)
            summaries.extend(filter(None, [piece.fold.summary]))
            messages += piece.fold.messages
            tokens += piece.fold.tokens
            continue
        messages += len(piece.messages)
        tokens += piece.tokens
        for message in piece.messages:
            tools.update(call.name for call in message.calls)
            if asks(message):
                questions.append(_quote(message))
    made = Fold(
        pieces[0].start,
        pieces[-1].stop,
        messages,
        round(tokens),
        tuple(sorted(tools.items(), key=lambda item: (-item[1], item[0]))),
        tuple(questions[:_MOST_QUOTES]),
        summary or " ".join(summaries),
    )
    dialect = DIALECTS[conversation.dialect]
    [value] = dialect.compose([Entry("user", (Text(text=digest(made, terse=terse)),))])
    message = Message(encode(value), "user", dialect)
    message.memo["fold"] = made
    return Piece((message,), made.start, made.stop, 0, "user", fold=made)


def transcript(pieces: Sequence[Piece]) -> str:
    """What was said in pieces, as a text to summarise; a digest speaks with its own words."""
    lines = []
    for piece in pieces:
        for message in piece.messages:
            for block in message.blocks:
                if isinstance(block, ToolCall):
                    lines.append(f"{message.role} calls {block.name}: {block.arguments}")
                elif isinstance(block, ToolResult):
                    lines.append(f"result: {block.text}")
                elif isinstance(block, Text):
                    lines.append(f"{message.role}: {block.text}")
    return "\n".join(lines)


def digest(made: Fold, *, terse: bool = False) -> str:
    """The text that stands for what was folded: the same for the same messages."""
    if terse:
        return f"[Folded: messages {made.start} to {made.stop - 1}]"
    parts = [
        f"[Folded: messages {made.start} to {made.stop - 1} of this conversation, "
        f"{made.messages} messages, about {made.tokens} tokens."
    ]
    if made.tools:
        shown = ", ".join(f"{name} {number}x" for name, number in made.tools[:8])
        parts.append(f"Tools called: {shown}.")
    if made.questions:
        parts.append("The user asked: " + "; ".join(made.questions) + ".")
    if made.summary:
        parts.append(f"In short: {made.summary}")
    return " ".join(parts) + "]"


def _quote(message: Message) -> str:
    text = " ".join(b.text for b in message.blocks if isinstance(b, Text) and b.text)
    words = " ".join(text.split())
    return f'"{words[:_QUOTED]}…"' if len(words) > _QUOTED else f'"{words}"'


def shorten_results(
    piece: Piece, conversation: Conversation, most: int, *, one_line: bool = False
) -> Piece | None:
    """Cut the middle out of a piece's tool results; None if none is longer than `most`."""
    shorten = line_cut if one_line else middle_cut
    messages = tuple(_shortened(m, conversation, most, shorten) for m in piece.messages)
    if messages == piece.messages:  # messages compare by identity
        return None
    # Its tokens go with its size, which is near enough to choose by; the result is counted anew.
    share = sum(len(m.raw) for m in messages) / sum(len(m.raw) for m in piece.messages)
    return msgspec.structs.replace(piece, messages=messages, tokens=piece.tokens * share)


def _shortened(
    message: Message, conversation: Conversation, most: int, shorten: Callable[[str, int], str]
) -> Message:
    dialect = DIALECTS[conversation.dialect]
    span = message.span
    for result in message.results:
        if len(result.text) > most + 120 and not result.is_error:
            value: Any = dialect.content(result, shorten(result.text, most))
            span = splice(span, result.slot, encode(value))
    return message if span is message.span else Message(span, message.role, dialect)


def middle_cut(text: str, most: int) -> str:
    """The beginning and the end of a text, and how much is missing between."""
    head, tail = text[: most * 2 // 3], text[len(text) - most // 3 :]
    gone = len(text) - len(head) - len(tail)
    return f"{head}\n[… {gone} characters cut …]\n{tail}"


def line_cut(text: str, most: int) -> str:
    """The same on one line."""
    return " ".join(middle_cut(text, most).split())
