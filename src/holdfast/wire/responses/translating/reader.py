"""What the four dialects' readers share: values of a provider's stream in, pieces out.

reader: after usages; one file per dialect follows. A whole answer is read as a stream of one
value, so that both say the same. What a reader does not know it skips, and names as lost.

What the four dialects' writers share: pieces in, the dialect's own events out. The caller gives
pieces in order: see `BlockOrder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.wire.responses.shared import text
from holdfast.wire.responses.translating.pieces import (
    AnswerBegins,
    AnswerBlock,
    AnswerFails,
    BlockBegins,
    BlockOrder,
    Kind,
    Losses,
    ModelStops,
    Piece,
    Stop,
    WholeAnswer,
)
from holdfast.wire.values import take

SIGNATURES = "thinking signatures"
"""They are sealed by one provider, and no other takes them."""
CITATIONS = "citations"
LOGPROBS = "logprobs"


class AnswerReader(ABC):
    """Reads one answer. Feed it the values of the stream, then finish it."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.blocks = BlockOrder()
        self.id = ""
        """The provider's id of the answer."""
        self._began = False
        self._words: Kind | None = None
        """What is being said, in dialects that do not part it into blocks."""
        self._run = 0
        """How many runs of words there were: the key of the latest."""

    def read(self, value: dict[str, Any]) -> list[Piece]:
        """Take one value of the stream, or a whole answer."""
        out: list[Piece] = []
        self.take(value, out)
        return out

    @abstractmethod
    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Put the pieces that a value holds into `out`."""

    def finish(self) -> list[Piece]:
        """Give what waited for a value that never came."""
        out: list[Piece] = []
        self.blocks.close_all(out)
        return out

    def begin(self, answer_id: Any, created: Any, out: list[Piece]) -> None:
        """Say once that the answer has begun."""
        if not self._began:
            self._began = True
            self.id = text(answer_id)
            seconds = int(created) if isinstance(created, (int, float)) else 0
            out.append(AnswerBegins(self.id, seconds))

    def say(self, kind: Kind, words: str, out: list[Piece]) -> None:
        """Go on with a run of words of one kind, or begin one."""
        if not words:
            return
        if self._words != kind:
            self.hush(out)
            self._words = kind
            self._run += 1
            self.blocks.open(("words", self._run), BlockBegins(kind), out)
        self.blocks.grow(("words", self._run), words, out)

    def hush(self, out: list[Piece]) -> None:
        """End the run of words, if there is one."""
        if self._words is not None:
            self._words = None
            self.blocks.close(("words", self._run), out)

    def stop(self, native: str, reasons: dict[str, Stop], out: list[Piece]) -> None:
        """Say why the model stopped; a reason that nobody else knows is the end of its turn."""
        reason = reasons.get(native)
        if reason is None:
            self.losses.add("the stop reason", native)
        out.append(ModelStops(reason or "end"))


# What providers call an error inside a stream, where there is no HTTP status any more.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "context_length_exceeded": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


def failure(error: Any, status: int = 0) -> AnswerFails:
    """An error as any of the providers writes it, the message in its own words.

    `status` is the one it came with; inside a stream there is none, and it is told from the kind.
    """
    code = error.get("code") if isinstance(error, dict) else None
    kinds = [take(error, key) for key in ("code", "type", "status")]
    numbered = code if isinstance(code, int) and 400 <= code < 600 else 0
    statuses = [_STATUSES[kind] for kind in kinds if kind in _STATUSES]
    message = text(error) or take(error, "message") or "The provider reported an error."
    kind = next((kind for kind in kinds if kind and kind != "error"), "")
    return AnswerFails(status or numbered or next(iter(statuses), 502), message, kind)


class AnswerWriter(ABC):
    """Writes one answer as a stream."""

    def __init__(self, *, include_usage: bool = True) -> None:
        self.include_usage = include_usage
        """OpenAI's chat tells what was used only to clients that ask for it."""

    @abstractmethod
    def begin(self, answer: WholeAnswer) -> list[bytes]:
        """Begin; of the answer only its id, its model and perhaps its input are known."""

    @abstractmethod
    def open(self, block: BlockBegins) -> list[bytes]:
        """Begin a block."""

    @abstractmethod
    def grow(self, text: str) -> list[bytes]:
        """Go on with the block that is open."""

    @abstractmethod
    def close(self, block: AnswerBlock) -> list[bytes]:
        """End the block that is open; `block` has all of it."""

    @abstractmethod
    def end(self, answer: WholeAnswer) -> list[bytes]:
        """End the stream; `answer` has all of it."""
