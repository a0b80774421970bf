"""The base classes of readers (provider's stream to pieces) and writers (pieces to events).

A complete response is read as a stream of one value. Unknown content is skipped and recorded as
lost; writers receive pieces in the order of `BlockOrder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.wire.responses.shared import text
from holdfast.wire.responses.translation.pieces import (
    AnswerBegins,
    AnswerBlock,
    AnswerFails,
    BlockBegins,
    BlockOrder,
    CompletePieces,
    Kind,
    Losses,
    ModelStops,
    Piece,
    Stop,
)
from holdfast.wire.values import take

SIGNATURES = "thinking signatures"
"""Signatures are encrypted by one provider, and no other accepts them."""
CITATIONS = "citations"
LOGPROBS = "logprobs"


class AnswerReader(ABC):
    """Reads one response from the values of a stream; call `finish` at its end."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.blocks = BlockOrder()
        self.id = ""
        """The provider's id of the response."""
        self._began = False
        self._words: Kind | None = None
        """Kind of the current text, in dialects without explicit blocks."""
        self._run = 0
        """Number of text runs so far; the key of the current one."""

    def read(self, value: dict[str, Any]) -> list[Piece]:
        """Return the pieces of one value of the stream, or of a complete response."""
        out: list[Piece] = []
        self.take(value, out)
        return out

    @abstractmethod
    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Append the pieces of a value to `out`."""

    def finish(self) -> list[Piece]:
        """Return the pieces that waited for a missing value."""
        out: list[Piece] = []
        self.blocks.close_all(out)
        return out

    def begin(self, answer_id: Any, created: Any, out: list[Piece]) -> None:
        """Append the start of the response, once."""
        if not self._began:
            self._began = True
            self.id = text(answer_id)
            seconds = int(created) if isinstance(created, (int, float)) else 0
            out.append(AnswerBegins(self.id, seconds))

    def say(self, kind: Kind, words: str, out: list[Piece]) -> None:
        """Append text of a kind, continuing the current run or starting one."""
        if not words:
            return
        if self._words != kind:
            self.hush(out)
            self._words = kind
            self._run += 1
            self.blocks.open(("words", self._run), BlockBegins(kind), out)
        self.blocks.grow(("words", self._run), words, out)

    def hush(self, out: list[Piece]) -> None:
        """End the current run of text, if there is one."""
        if self._words is not None:
            self._words = None
            self.blocks.close(("words", self._run), out)

    def stop(self, native: str, reasons: dict[str, Stop], out: list[Piece]) -> None:
        """Append the stop reason; an unknown reason counts as an ordinary end."""
        reason = reasons.get(native)
        if reason is None:
            self.losses.add("the stop reason", native)
        out.append(ModelStops(reason or "end"))


# Error types inside a stream, where there is no HTTP status.
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
    """Return an error from any provider's format, with its original message.

    `status` is the HTTP status; inside a stream there is none, and it is derived from the type.
    """
    code = error.get("code") if isinstance(error, dict) else None
    kinds = [take(error, key) for key in ("code", "type", "status")]
    numbered = code if isinstance(code, int) and 400 <= code < 600 else 0
    statuses = [_STATUSES[kind] for kind in kinds if kind in _STATUSES]
    message = text(error) or take(error, "message") or "The provider reported an error."
    kind = next((kind for kind in kinds if kind and kind != "error"), "")
    return AnswerFails(status or numbered or next(iter(statuses), 502), message, kind)


class AnswerWriter(ABC):
    """Writes one response as a stream."""

    def __init__(self, *, include_usage: bool = True) -> None:
        self.include_usage = include_usage
        """OpenAI chat reports usage only to clients that request it."""

    @abstractmethod
    def begin(self, answer: CompletePieces) -> list[bytes]:
        """Return the start; only the id, the model and perhaps the input usage are known."""

    @abstractmethod
    def open(self, block: BlockBegins) -> list[bytes]:
        """Return the start of a block."""

    @abstractmethod
    def grow(self, text: str) -> list[bytes]:
        """Return text added to the open block."""

    @abstractmethod
    def close(self, block: AnswerBlock) -> list[bytes]:
        """Return the end of the open block; `block` is complete."""

    @abstractmethod
    def end(self, answer: CompletePieces) -> list[bytes]:
        """Return the end of the stream; `answer` is complete."""
