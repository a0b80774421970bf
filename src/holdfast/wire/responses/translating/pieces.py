"""An answer in no dialect: the kinds of piece that every reader gives and every writer takes.

pieces: first in translating. A block (text, thinking, a refusal, a call) is opened, grows and is
closed, and blocks stand one behind the other, never in each other: see `BlockOrder`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from hashlib import sha256
from typing import Literal

import msgspec

Kind = Literal["text", "thinking", "refusal", "call", "custom"]
"""What a block is. `custom` is a call of one of OpenAI's custom tools, whose input is any text."""

Stop = Literal["end", "length", "calls", "sequence", "filtered"]
"""Why the model stopped: its turn was over, it had no tokens left, it called tools, it wrote a
stop sequence, or what it wrote was filtered."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer used, in tokens; None is a count that the provider did not report."""

    input: int | None = None
    """All that the model was shown, cached tokens included."""
    output: int | None = None
    """All that it wrote, thinking included."""
    cached: int | None = None
    """The part of the input that was read from the provider's cache."""
    written: int | None = None
    """The part of the input that was put into it."""
    thinking: int | None = None
    """The part of the output that was thinking."""
    account: dict[str, int] | None = None
    """What the proxy says of several upstream calls: `shared.with_account`."""


class AnswerBegins(msgspec.Struct, frozen=True):
    """The answer has begun."""

    id: str = ""
    created: int = 0


class BlockBegins(msgspec.Struct, frozen=True):
    """A block begins."""

    kind: Kind
    id: str = ""
    """A call's id; never empty for a call."""
    name: str = ""


class BlockGrows(msgspec.Struct, frozen=True):
    """The block that is open goes on: words, or a call's arguments as JSON text."""

    text: str


class BlockEnds(msgspec.Struct, frozen=True):
    """The block that is open is complete."""


class ModelStops(msgspec.Struct, frozen=True):
    """The model has stopped; what it used may still follow."""

    reason: Stop
    sequence: str | None = None


class UsageReported(msgspec.Struct, frozen=True):
    """What the answer has used so far; a later one replaces it."""

    spent: Spent


class AnswerFails(msgspec.Struct, frozen=True):
    """The provider reports an error, after which nothing follows."""

    status: int
    message: str
    kind: str = ""
    """The provider's own word for it, such as `context_length_exceeded`."""


class AnswerEnds(msgspec.Struct, frozen=True):
    """The provider has said its last word."""


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
    """A block that is complete."""

    kind: Kind
    text: str
    id: str = ""
    name: str = ""


class WholeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer, in no dialect."""

    id: str
    """Letters, digits, `-` and `_`; each dialect puts its own prefix before it."""
    model: str
    created: int = 0
    """Seconds since 1970; 0 where nobody said."""
    blocks: tuple[AnswerBlock, ...] = ()
    stop: Stop = "end"
    sequence: str | None = None
    usage: Spent = Spent()

    @property
    def calls(self) -> bool:
        """Whether it calls tools."""
        return any(block.kind in ("call", "custom") for block in self.blocks)


# --- blocks, one behind the other --------------------------------------------------------------


class BlockOrder:
    """Puts blocks that grow at the same time one behind the other.

    OpenAI may write two calls by turns; Anthropic's clients take the next block only behind the
    one before. The first that is open goes through as it comes, the others wait for its end.
    """

    def __init__(self) -> None:
        self._current: Hashable = None
        self._waiting: OrderedDict[Hashable, list[Piece]] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        """Whether a block is open, or waits."""
        return key is not None and (key == self._current or key in self._waiting)

    def open(self, key: Hashable, piece: BlockBegins, out: list[Piece]) -> None:
        """Begin a block, under a key by which its pieces are known."""
        if self._current is None:
            self._current = key
            out.append(piece)
        else:
            self._waiting[key] = [piece]

    def grow(self, key: Hashable, text: str, out: list[Piece]) -> None:
        """Go on with a block; what belongs to none that is open is dropped."""
        if not text:
            return
        if key == self._current and key is not None:
            out.append(BlockGrows(text))
        elif key in self._waiting:
            self._waiting[key].append(BlockGrows(text))

    def close(self, key: Hashable, out: list[Piece]) -> None:
        """End a block, and give those that waited for it."""
        if key in self._waiting:
            self._waiting[key].append(BlockEnds())
        elif key == self._current and key is not None:
            out.append(BlockEnds())
            self._current = None
            self._go_on(out)

    def close_all(self, out: list[Piece]) -> None:
        """End every block, in the order in which they began."""
        while self._current is not None:
            self.close(self._current, out)

    def _go_on(self, out: list[Piece]) -> None:
        while self._current is None and self._waiting:
            key, pieces = self._waiting.popitem(last=False)
            out.extend(pieces)
            if not isinstance(pieces[-1], BlockEnds):
                self._current = key


# --- ids and losses ----------------------------------------------------------------------------

# What the providers put before their ids; a translated answer has its own dialect's instead.
_PREFIX = re.compile(r"^(?:chatcmpl-|msg_|resp_|gen-)")


def bare_id(name: str) -> str:
    """A provider's id without its prefix, in signs and length that every dialect takes."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", _PREFIX.sub("", name[:200]))[:40]


def call_id(answer_id: str, number: int, name: str, arguments: str = "") -> str:
    """An id for a call that came without one: the same call of the same answer has the same."""
    told = "\0".join((answer_id, str(number), name, arguments))
    return f"call_{sha256(told.encode(errors='replace')).hexdigest()[:24]}"


class Losses:
    """What could not be carried over, in a few words each, for people and for a header."""

    MOST = 20
    """A provider that invents names for everything does not fill the header."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, what: str, name: str = "") -> None:
        """Note a loss; `name` is the provider's word, of which only plain signs are taken."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name[:40])
        loss = f"{what} {plain}" if plain else what
        if len(self._names) < self.MOST:
            self._names.setdefault(loss)

    @property
    def names(self) -> tuple[str, ...]:
        """All losses, in the order in which they were met."""
        return tuple(self._names)
