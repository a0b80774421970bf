"""One message of a request: its exact bytes, with its parsed content on demand.

The bytes are a window on the body that contained the message. Clients resend their full history, so
a body that begins like the previous one replaces it for all messages at once: one body stays in
memory, and a turn costs only what it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from sys import getsizeof
from threading import Lock
from typing import Any, NamedTuple, overload

import msgspec

from holdfast.wire.blocks import Block, Opaque, Role, Text, ToolCall, ToolResult, text_of
from holdfast.wire.dialect import Dialect
from holdfast.wire.json_places import Place
from holdfast.wire.notes import NoteKind, drop_transient_notes
from holdfast.wire.rules.rule import CheckedMessage
from holdfast.wire.strict import decode, holds


class Body:
    """The bytes of a request, on which messages are windows."""

    __slots__ = ("data",)
    _growing = Lock()

    def __init__(self, data: bytes) -> None:
        self.data = data

    def grow(self, before: bytes | None, longer: bytes) -> bool:
        """Replace the body by a longer one that begins with the bytes of all windows.

        Only one body can continue another. A second one, such as a rephrased question, finds the
        data changed and keeps its own bytes.
        """
        with self._growing:
            if self.data is before:
                self.data = longer
                return True
            return False


class MessageWindow(NamedTuple):
    """The position of a message in a body."""

    body: Body
    start: int
    stop: int


class Message:
    """One element of the request's message list."""

    __slots__ = ("_blocks", "_dialect", "_parsed", "dialect", "notes", "role", "window")

    def __init__(
        self,
        span: bytes | msgspec.Raw | MessageWindow,
        role: Role,
        dialect: Dialect,
        parsed: Any = None,
    ) -> None:
        self.window = span
        """The message's bytes, or their position in a body."""
        self.dialect = dialect.NAME
        """Name of the dialect in which the message is written."""
        self._dialect = dialect
        self._blocks: tuple[Block, ...] | None = None
        self._parsed = parsed
        self.notes: dict[NoteKind, Any] = {}
        """Values that later steps derived from these bytes; only notes.py accesses them."""
        self.role = role
        """Speaker. A user message of Anthropic or Gemini may hold tool results."""

    @property
    def span(self) -> bytes | msgspec.Raw:
        """Return the message's bytes, without a copy if they are in a body."""
        window = self.window
        if isinstance(window, MessageWindow):
            return msgspec.Raw(memoryview(window.body.data)[window.start : window.stop])
        return window

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        window = self.window
        if isinstance(window, MessageWindow):
            return window.stop - window.start
        return len(window)

    @property
    def raw(self) -> bytes:
        """Return a copy of the message's bytes."""
        return bytes(self.span)

    def holds(self, words: bytes) -> bool:
        """Return whether the message contains some bytes, without copying it."""
        window = self.window
        if isinstance(window, MessageWindow):
            return holds(window.body.data, words, window.start, window.stop)
        return words in bytes(window)

    @property
    def value(self) -> Any:
        """Return the message as a new JSON value, which the caller may change."""
        return decode(self.span)

    @property
    def parsed(self) -> Any:
        """Return the message as a shared JSON value, which nobody may change.

        Five steps read a new request; sharing one parsed value keeps its texts in memory once.
        """
        parsed = self._parsed
        if parsed is None:  # another thread may release it at any time, so it is kept in a local
            parsed = self._parsed = self.value
        return parsed

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks of the message."""
        blocks = self._blocks
        if blocks is None:  # another thread may release it at any time, so it is kept in a local
            blocks = self._blocks = self._dialect.blocks(self.parsed, self)
        return blocks

    @property
    def calls(self) -> list[ToolCall]:
        """Return the tool calls among the blocks."""
        return [block for block in self.blocks if isinstance(block, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        """Return the tool results among the blocks."""
        return [block for block in self.blocks if isinstance(block, ToolResult)]

    def let_go(self) -> None:
        """Drop what can be derived from the bytes again: texts, and references to this message.

        A reference cycle would wait for the garbage collector, which runs rarely.
        """
        self._parsed = self._blocks = None
        drop_transient_notes(self)

    def let_texts_go(self) -> None:
        """Drop only the texts; a cited message is compared but no longer read.

        Sums and hashes over the preceding messages stay, so that the next request need not
        recompute them.
        """
        self._parsed = self._blocks = None
        drop_transient_notes(self, texts_alone=True)

    def settle(self) -> None:
        """Drop the JSON value; later requests read the equivalent blocks."""
        self._parsed = None

    @property
    def parsed_bytes(self) -> int:
        """Return the approximate memory in bytes besides the message's own bytes."""
        size = _OWN_BYTES
        for block in self._blocks or ():
            size += _BLOCK_BYTES
            if isinstance(block, ToolCall):  # values take more memory than their JSON, texts less
                size += self.size
            else:
                parts = block.parts if isinstance(block, ToolResult) else ()
                size += sum(getsizeof(text_of(each)) for each in (block, *parts))
        return size

    def __repr__(self) -> str:
        return f"<Message {self.role}, {self.size} bytes>"


# Memory of a message without its bytes and blocks: notes for tokens, hashes and facts (measured
# with tracemalloc).
_OWN_BYTES = 1_500
_BLOCK_BYTES = 300


def spans_of(messages: Sequence[Message]) -> list[bytes | memoryview]:
    """Return the bytes of messages for joining, without copies."""
    # Inlined `bytes_of`: calling it for each message of each run takes most of a trim's time.
    return [
        memoryview(window.body.data)[window.start : window.stop]
        if isinstance(window := message.window, MessageWindow)
        else memoryview(window)
        for message in messages
    ]


def bytes_of(message: Message) -> bytes | memoryview:
    """Return the bytes of a message without a copy."""
    window = message.window
    if isinstance(window, MessageWindow):
        return memoryview(window.body.data)[window.start : window.stop]
    return memoryview(window)


def result_texts(message: Message) -> Iterator[tuple[ToolResult, Block, str]]:
    """Yield the texts of a message's results, each with the block to replace it in.

    A result with only text yields one text; a result with images yields each text separately.
    """
    for result in message.results:
        texts = [part for part in result.parts if isinstance(part, Text)]
        # Converse sends JSON values as separate parts; the result's text contains them.
        values = [p for p in result.parts if isinstance(p, Opaque) and p.type == "json"]
        if len(texts) + len(values) == len(result.parts):
            yield result, result, result.text
        else:
            yield from ((result, part, part.text) for part in texts if part.slot)


def common_prefix(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return the length of the common prefix of two lists, compared by identity.

    Slices are compared at the speed of pointer comparison, with bisection where they differ.
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


class CheckedMessages(Sequence[CheckedMessage]):
    """Messages as rules read them, each parsed on demand."""

    def __init__(self, messages: tuple[Message, ...], place_of: Callable[[int], Place]) -> None:
        self._messages = messages
        self._place_of = place_of
        self._seen: dict[int, CheckedMessage] = {}

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> CheckedMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CheckedMessage]: ...
    def __getitem__(self, index: int | slice) -> CheckedMessage | Sequence[CheckedMessage]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        message = self._messages[index]
        index %= len(self)
        if index not in self._seen:
            place = self._place_of(index)
            self._seen[index] = CheckedMessage(place, message.role, message.parsed, message.blocks)
        return self._seen[index]
