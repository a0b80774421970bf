"""One message of a request: its very bytes, and what they say when someone looks.

message: after the dialects and what rules look at; conversation.py holds these. The bytes are a
place in the body that the message came in. Clients send their whole history with each request: a
body that begins like the one before takes its place for all messages at once, so that one body is
held however many came, and a turn costs what was added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from sys import getsizeof
from threading import Lock
from typing import Any, NamedTuple, overload

import msgspec

from holdfast.wire.blocks import Block, Opaque, Role, Text, ToolCall, ToolResult, text_of
from holdfast.wire.dialect import Dialect
from holdfast.wire.notes import NoteKind, forget_passing
from holdfast.wire.pointing import Place
from holdfast.wire.rules.rule import Seen
from holdfast.wire.strict import decode, holds


class Body:
    """The bytes of a request that messages are windows on."""

    __slots__ = ("data",)
    _growing = Lock()

    def __init__(self, data: bytes) -> None:
        self.data = data

    def grow(self, before: bytes | None, longer: bytes) -> bool:
        """Take a body whose messages begin with the very bytes of all that these windows show.

        Only one body can go on from another. Who comes second, such as a question asked again in
        other words, finds that this one is no longer what it was, and keeps bytes of its own.
        """
        with self._growing:
            if self.data is before:
                self.data = longer
                return True
            return False


class Window(NamedTuple):
    """Where in a body a message stands."""

    body: Body
    start: int
    stop: int


class Message:
    """One element of the request's list of messages."""

    __slots__ = ("_blocks", "_dialect", "_parsed", "dialect", "notes", "role", "window")

    def __init__(
        self,
        span: bytes | msgspec.Raw | Window,
        role: Role,
        dialect: Dialect,
        parsed: Any = None,
    ) -> None:
        self.window = span
        """Its own bytes, or where they stand."""
        self.dialect = dialect.NAME
        """The name of the dialect it is written in."""
        self._dialect = dialect
        self._blocks: tuple[Block, ...] | None = None
        self._parsed = parsed
        self.notes: dict[NoteKind, Any] = {}
        """What later steps know about these bytes, by kind: see notes.py, which alone reads it."""
        self.role = role
        """Who speaks. A user message of Anthropic or Gemini may hold tool results."""

    @property
    def span(self) -> bytes | msgspec.Raw:
        """The message's own bytes; of those in a body not a copy."""
        window = self.window
        if isinstance(window, Window):
            return msgspec.Raw(memoryview(window.body.data)[window.start : window.stop])
        return window

    @property
    def size(self) -> int:
        """How many bytes it has."""
        window = self.window
        if isinstance(window, Window):
            return window.stop - window.start
        return len(window)

    @property
    def raw(self) -> bytes:
        """The message's own bytes, as a copy."""
        return bytes(self.span)

    def holds(self, words: bytes) -> bool:
        """Whether some bytes stand in it; it is not copied to be looked through."""
        window = self.window
        if isinstance(window, Window):
            return holds(window.body.data, words, window.start, window.stop)
        return words in bytes(window)

    @property
    def value(self) -> Any:
        """The message as a JSON value of the caller's own, who may change it."""
        return decode(self.span)

    @property
    def parsed(self) -> Any:
        """The message as a JSON value that all share, and none may change.

        A request that is seen for the first time is looked at from five sides: read once, and not
        once for each, its texts are in memory once.
        """
        parsed = self._parsed
        if parsed is None:  # and may be again at once: another thread may let it go
            parsed = self._parsed = self.value
        return parsed

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What the message is made of."""
        blocks = self._blocks
        if blocks is None:  # and may be again at once: another thread may let it go
            blocks = self._blocks = self._dialect.blocks(self.parsed, self)
        return blocks

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls among the blocks."""
        return [block for block in self.blocks if isinstance(block, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        """The tool results among the blocks."""
        return [block for block in self.blocks if isinstance(block, ToolResult)]

    def let_go(self) -> None:
        """Forget what can be had from the bytes again: texts, and what refers to this message.

        What refers to itself would wait for the garbage collector, which seldom comes.
        """
        self._parsed = self._blocks = None
        forget_passing(self)

    def let_texts_go(self) -> None:
        """Forget the texts alone: a cited message is compared, and never looked at.

        Sums and hashes over the messages up to it stay, or the next request would begin anew.
        """
        self._parsed = self._blocks = None
        forget_passing(self, texts_alone=True)

    def settle(self) -> None:
        """Forget the JSON value: the blocks say the same, and later requests look at those."""
        self._parsed = None

    @property
    def parsed_bytes(self) -> int:
        """About how much memory it takes beside its bytes."""
        size = _OWN_BYTES
        for block in self._blocks or ():
            size += _BLOCK_BYTES
            if isinstance(block, ToolCall):  # values take more than their JSON, texts less
                size += self.size
            else:
                parts = block.parts if isinstance(block, ToolResult) else ()
                size += sum(getsizeof(text_of(each)) for each in (block, *parts))
        return size

    def __repr__(self) -> str:
        return f"<Message {self.role}, {self.size} bytes>"


_OWN_BYTES = 1_500
"""A message without its bytes and blocks: notes of its tokens, hashes, facts (by tracemalloc)."""
_BLOCK_BYTES = 300


def spans_of(messages: Sequence[Message]) -> list[bytes | memoryview]:
    """The bytes of messages, to be joined; a trim joins long runs many times over."""
    # As `bytes_of`, written out: a call for each message of each run is most of a trim's work.
    return [
        memoryview(window.body.data)[window.start : window.stop]
        if isinstance(window := message.window, Window)
        else memoryview(window)
        for message in messages
    ]


def bytes_of(message: Message) -> bytes | memoryview:
    """The bytes of a message, not copied."""
    window = message.window
    if isinstance(window, Window):
        return memoryview(window.body.data)[window.start : window.stop]
    return memoryview(window)


def result_texts(message: Message) -> Iterator[tuple[ToolResult, Block, str]]:
    """The texts of a message's results, each with the block to write another into.

    A result that is only text is one; of one with images in it, each text is one for itself.
    """
    for result in message.results:
        texts = [part for part in result.parts if isinstance(part, Text)]
        # Converse gives JSON values as parts of their own; the text of the result holds them.
        values = [p for p in result.parts if isinstance(p, Opaque) and p.type == "json"]
        if len(texts) + len(values) == len(result.parts):
            yield result, result, result.text
        else:
            yield from ((result, part, part.text) for part in texts if part.slot)


def beginning(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages two lists have in common at their beginning: the very same objects.

    Lists are compared as a whole, as fast as their pointers can be read; halved where they part.
    """
    low, high = 0, min(len(before), len(now))
    middle = high
    while low < high:
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


class SeenMessages(Sequence[Seen]):
    """Messages as rules look at them, each parsed when it is looked at."""

    def __init__(self, messages: tuple[Message, ...], place_of: Callable[[int], Place]) -> None:
        self._messages = messages
        self._place_of = place_of
        self._seen: dict[int, Seen] = {}

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Seen: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Seen]: ...
    def __getitem__(self, index: int | slice) -> Seen | Sequence[Seen]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        message = self._messages[index]
        index %= len(self)
        if index not in self._seen:
            place = self._place_of(index)
            self._seen[index] = Seen(place, message.role, message.parsed, message.blocks)
        return self._seen[index]
