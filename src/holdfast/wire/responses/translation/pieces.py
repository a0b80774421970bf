"""The dialect-independent pieces of a response.

A block (text, thinking, a refusal, a call) is opened, extended and closed; blocks follow one
another and are never nested: see `BlockOrder`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from hashlib import sha256
from typing import Literal

import msgspec

Kind = Literal["text", "thinking", "refusal", "call", "custom"]
"""Kind of a block. `custom` is a call of an OpenAI custom tool, whose input is free-form text."""

Stop = Literal["end", "length", "calls", "sequence", "filtered"]
"""Why the model stopped: end of its turn, no tokens left, tool calls, a stop sequence, or filtered
content.
"""


class ResponseUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a response in tokens; None for counts that the provider did not report."""

    input: int | None = None
    """All input tokens, including cached ones."""
    output: int | None = None
    """All output tokens, including thinking."""
    cached: int | None = None
    """Input tokens read from the provider's cache."""
    written: int | None = None
    """Input tokens written to the provider's cache."""
    thinking: int | None = None
    """Output tokens used for thinking."""
    account: dict[str, int] | None = None
    """The proxy's totals over several upstream calls; see `shared.with_account`."""


class AnswerBegins(msgspec.Struct, frozen=True):
    """The start of a response."""

    id: str = ""
    created: int = 0


class BlockBegins(msgspec.Struct, frozen=True):
    """The start of a block."""

    kind: Kind
    id: str = ""
    """Id of a call; never empty for a call."""
    name: str = ""


class BlockGrows(msgspec.Struct, frozen=True):
    """Text added to the open block: words, or a call's arguments as JSON."""

    text: str


class BlockEnds(msgspec.Struct, frozen=True):
    """The end of the open block."""


class ModelStops(msgspec.Struct, frozen=True):
    """The stop reason; usage may still follow."""

    reason: Stop
    sequence: str | None = None


class UsageReported(msgspec.Struct, frozen=True):
    """Usage so far; replaced by a later report."""

    spent: ResponseUsage


class AnswerFails(msgspec.Struct, frozen=True):
    """An error reported by the provider; nothing follows it."""

    status: int
    message: str
    kind: str = ""
    """The provider's error type, such as `context_length_exceeded`."""


class AnswerEnds(msgspec.Struct, frozen=True):
    """The end of the response."""


Piece = (
    AnswerBegins
    | BlockBegins
    | BlockGrows
    | BlockEnds
    | ModelStops
    | UsageReported
    | AnswerFails
    | AnswerEnds
)


class AnswerBlock(msgspec.Struct, frozen=True):
    """A completed block."""

    kind: Kind
    text: str
    id: str = ""
    name: str = ""


class CompletePieces(msgspec.Struct, frozen=True, kw_only=True):
    """A complete response in dialect-independent form."""

    id: str
    """Letters, digits, `-` and `_`; each dialect adds its own prefix."""
    model: str
    created: int = 0
    """Seconds since 1970; 0 if unknown."""
    blocks: tuple[AnswerBlock, ...] = ()
    stop: Stop = "end"
    sequence: str | None = None
    usage: ResponseUsage = ResponseUsage()

    @property
    def calls(self) -> bool:
        """Return whether it calls tools."""
        return any(block.kind in ("call", "custom") for block in self.blocks)


# --- order of blocks ---------------------------------------------------------------------------


class BlockOrder:
    """Serialises blocks that grow at the same time.

    OpenAI may interleave two calls, but Anthropic's clients accept a block only after the previous
    one. The first open block is passed on directly, and the others wait for its end.
    """

    def __init__(self) -> None:
        self._current: Hashable = None
        self._waiting: OrderedDict[Hashable, list[Piece]] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a block is open or waiting."""
        return key is not None and (key == self._current or key in self._waiting)

    def open(self, key: Hashable, piece: BlockBegins, out: list[Piece]) -> None:
        """Open a block under a key that identifies its pieces."""
        if self._current is None:
            self._current = key
            out.append(piece)
        else:
            self._waiting[key] = [piece]

    def grow(self, key: Hashable, text: str, out: list[Piece]) -> None:
        """Extend a block; text for a block that is not open is dropped."""
        if not text:
            return
        if key == self._current and key is not None:
            out.append(BlockGrows(text))
        elif key in self._waiting:
            self._waiting[key].append(BlockGrows(text))

    def close(self, key: Hashable, out: list[Piece]) -> None:
        """Close a block, and pass on the blocks that waited for it."""
        if key in self._waiting:
            self._waiting[key].append(BlockEnds())
        elif key == self._current and key is not None:
            out.append(BlockEnds())
            self._current = None
            self._go_on(out)

    def close_all(self, out: list[Piece]) -> None:
        """Close all blocks in the order in which they were opened."""
        while self._current is not None:
            self.close(self._current, out)

    def _go_on(self, out: list[Piece]) -> None:
        while self._current is None and self._waiting:
            key, pieces = self._waiting.popitem(last=False)
            out.extend(pieces)
            if not isinstance(pieces[-1], BlockEnds):
                self._current = key


# --- ids and losses ----------------------------------------------------------------------------

# Prefixes of providers' ids; a translated response has its own dialect's prefix instead.
_PREFIX = re.compile(r"^(?:chatcmpl-|msg_|resp_|gen-)")


def bare_id(name: str) -> str:
    """Return a provider's id without prefix, in characters and length that all dialects accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", _PREFIX.sub("", name[:200]))[:40]


def call_id(answer_id: str, number: int, name: str, arguments: str = "") -> str:
    """Return a deterministic id for a call without one."""
    seed = "\0".join((answer_id, str(number), name, arguments))
    return f"call_{sha256(seed.encode(errors='replace')).hexdigest()[:24]}"


class Losses:
    """The content that a translation lost, as short texts for people and for a header."""

    MOST = 20
    """Limit, so that a provider that invents names cannot fill the header."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, what: str, name: str = "") -> None:
        """Record a loss; `name` is the provider's word, reduced to plain characters."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name[:40])
        loss = f"{what} {plain}" if plain else what
        if len(self._names) < self.MOST:
            self._names.setdefault(loss)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all losses in order of occurrence."""
        return tuple(self._names)
