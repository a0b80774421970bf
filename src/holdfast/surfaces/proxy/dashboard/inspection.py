"""A turn from both sides, message by message: the client's request, and the sent one.

Pure: the bytes of messages are arguments. Long text is cut, so that a page stays small for any
message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.engine.record import Sides, unpatched
from holdfast.errors import WireError
from holdfast.store.records import Edit
from holdfast.store.refs import REF
from holdfast.surfaces.proxy.dashboard.html import text as as_html
from holdfast.surfaces.proxy.dashboard.views import Explanation
from holdfast.wire import (
    Block,
    Conversation,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    read,
)
from holdfast.wire.frame import unpack
from holdfast.wire.strict import encode

CLIENT, SENT = "client", "sent"
MOST_SHOWN = 3_000
"""Characters of a message that the inspector shows."""
MOST_FOLDED = 30
"""Messages of a fold that it shows, each only in its beginning."""
_MOST_IN_FOLD = 300
_MOST_PIECES = 40
_HTML_GROWTH = 2
"""How many times longer a text may be as HTML; code with many quotes is half as long again."""


class Pair(msgspec.Struct, frozen=True):
    """The client's messages and the messages that were sent for them, as ranges of both lists."""

    client: range
    sent: range


def aligned(clients: int, origins: Sequence[tuple[int, int]]) -> list[Pair]:
    """Every message of both sides in one pair, in order; either side of a pair may be empty."""
    pairs: list[Pair] = []
    done = 0
    for n, origin in enumerate(origins):
        start, stop = (min(edge, clients) for edge in origin)
        if start > done:
            pairs.append(Pair(range(done, start), range(n, n)))
            done = start
        if start < stop <= done and pairs and pairs[-1].sent:
            # A second message in place of the one before.
            pairs[-1] = Pair(pairs[-1].client, range(pairs[-1].sent.start, n + 1))
            continue
        pairs.append(Pair(range(done, max(done, stop)), range(n, n + 1)))
        done = max(done, stop)
    if done < clients:
        pairs.append(Pair(range(done, clients), range(len(origins), len(origins))))
    return pairs


class ShownBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block of a message, as it is shown."""

    kind: str
    name: str = ""
    text: str = ""
    is_error: bool = False


class MessageExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """A message, or its beginning."""

    index: int
    role: str
    pieces: tuple[ShownBlock, ...]
    size: int
    """Bytes of the whole message."""
    cut: bool = False
    """There is more of it than is shown."""


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """Messages side by side, and why they differ."""

    client: tuple[MessageExcerpt, ...]
    sent: tuple[MessageExcerpt, ...]
    same: bool
    more: int = 0
    """Messages of the client that are not shown."""
    edits: tuple[Explanation, ...] = ()
    refs: tuple[str, ...] = ()
    """Refs that the model saw in the place of content."""


class InspectedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The data to show messages: the sides, their bytes, and the edits."""

    dialect: str
    """The current dialect of the session."""
    sides: Sides
    stored: Mapping[str, bytes]
    turns: Mapping[Edit, int] = {}
    """Which turn made an edit."""

    def around(self, side: str) -> Conversation | None:
        """A side without its messages: system and tools; None if it cannot be read."""
        frame = self.stored.get(self.sides.frame)
        if frame is None:
            return None
        if side == CLIENT:
            if not self.stored.keys() >= self.sides.undone:
                return None
            frame = unpatched(frame, self.sides.patches, self.stored)
        for dialect in (self.dialect, None):  # an earlier turn may have spoken another
            with suppress(WireError):
                return read(unpack(frame).hollow, dialect)
        return None

    def hashes(self, side: str) -> tuple[str, ...]:
        """The messages of a side."""
        return self.sides.client if side == CLIENT else self.sides.sent


def needed(of: Sides, pairs: Iterable[Pair]) -> list[str]:
    """Return the hashes of the contents to read for some pairs."""
    names = {of.frame}
    # both properties build a new list: 0.5 s for a page of 100,000 messages
    client, sent_side = of.client, of.sent
    for pair in pairs:
        names.update(client[n] for n in pair.client[:MOST_FOLDED])
        names.update(sent_side[n] for n in pair.sent)
    return sorted(names - {""})


def rows(of: InspectedRequest, pairs: Sequence[Pair]) -> list[PairRow]:
    """Some pairs as they are shown."""
    client, sent_side = Reader(of, CLIENT), Reader(of, SENT)
    return [_row(of, pair, client, sent_side) for pair in pairs]


def _row(of: InspectedRequest, pair: Pair, client: Reader, sent: Reader) -> PairRow:
    visible = pair.client[:MOST_FOLDED]
    most = MOST_SHOWN if len(pair.client) == 1 else _MOST_IN_FOLD
    before = [client.names[n] for n in visible]
    after = [sent.names[n] for n in pair.sent]
    known_refs = set(_refs(of.stored.get(name, b"") for name in before))
    stands = _refs(of.stored.get(name, b"") for name in after)
    new = tuple(ref for ref in stands if ref not in known_refs)
    return PairRow(
        client=tuple(client.show(n, most) for n in visible),
        sent=tuple(sent.show(n, MOST_SHOWN) for n in pair.sent),
        same=before == after,
        more=len(pair.client) - len(visible),
        edits=tuple(_explained(of, pair)),
        refs=new,
    )


def _explained(of: InspectedRequest, pair: Pair) -> Iterator[Explanation]:
    """Yield the edits that explain why the messages of a pair differ from the client's."""
    for n in pair.sent:
        standing = of.sides.standings.get(n)
        for edit in standing.edits if standing is not None else ():
            yield Explanation(edit, of.turns.get(edit, 0))


def _refs(spans: Iterable[bytes]) -> list[str]:
    refs = (ref[0] for span in spans for ref in REF.finditer(span.decode("utf-8", "replace")))
    return list(dict.fromkeys(refs))


class Reader:
    """Reads messages of one side from their bytes."""

    def __init__(self, of: InspectedRequest, side: str) -> None:
        self._of = of
        self.names = of.hashes(side)
        self._around = of.around(side)

    def show(self, index: int, most: int | None = None) -> MessageExcerpt:
        """Return a message, cut to `most` characters unless it is None."""
        span = self._of.stored.get(self.names[index])
        if span is None:
            placeholder = ShownBlock(
                kind="gone", text="The bytes of this message are no longer stored."
            )
            return MessageExcerpt(index=index, role="?", pieces=(placeholder,), size=0)
        message = self._message(span)
        if message is None:
            unread = (ShownBlock(kind="raw", text=span.decode("utf-8", "replace")),)
            blocks, cut = _shortened(unread, most)
            return MessageExcerpt(index=index, role="?", pieces=blocks, size=len(span), cut=cut)
        blocks, cut = _shortened(map(piece, message.blocks), most)
        return MessageExcerpt(
            index=index, role=message.role, pieces=blocks, size=len(span), cut=cut
        )

    def _message(self, span: bytes) -> Message | None:
        """The message alone in a body of its dialect; None if it cannot be read."""
        if self._around is None:
            return None
        frame = self._around.frame
        body = span if frame.bare else b"[" + span + b"]"
        for key in reversed(frame.place):
            body = b"{" + encode(str(key)) + b":" + body + b"}"
        try:
            [message] = read(body, self._around.dialect).messages
        except WireError:
            return None
        return message


def _shortened(
    pieces: Iterable[ShownBlock], most: int | None
) -> tuple[tuple[ShownBlock, ...], bool]:
    if most is None:
        return tuple(pieces), False
    blocks: list[ShownBlock] = []
    for block in pieces:
        if len(blocks) == _MOST_PIECES or most <= 0:
            return tuple(blocks), True
        text = _light(block.text, most)
        if len(text) < len(block.text):
            blocks.append(msgspec.structs.replace(block, text=text))
            return tuple(blocks), True
        blocks.append(block)
        most -= len(block.text)
    return tuple(blocks), False


def _light(text: str, most: int) -> str:
    """Return the beginning of a text: at most `most` characters, and not much more as HTML.

    A control character is ten bytes of HTML: a page of 40 such messages would be megabytes.
    """
    beginning = text[:most]
    while len(as_html(beginning)) > _HTML_GROWTH * most:
        beginning = beginning[: len(beginning) // 2]
    return beginning


def piece(block: Block) -> ShownBlock:
    """A block as it is shown."""
    match block:
        case Text():
            return ShownBlock(kind="text", text=block.text)
        case ToolCall():
            return ShownBlock(kind="call", name=block.name, text=_json(block.arguments))
        case ToolResult():
            name = block.name or block.call_id
            return ShownBlock(kind="result", name=name, text=block.text, is_error=block.is_error)
        case Thinking():
            return ShownBlock(kind="thinking", text=block.text)
        case Media():
            return ShownBlock(kind=block.kind, name=block.media_type)
        case Opaque():
            return ShownBlock(kind="other", name=block.type)
        case _:
            return ShownBlock(kind="other")


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace")
