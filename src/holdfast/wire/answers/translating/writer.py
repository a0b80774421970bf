"""What the four dialects' writers share: pieces in, the dialect's own events out.

writer: after usages; one file per dialect follows, each with `whole`, which writes a complete
answer in one piece, and with a writer of streams. The caller gives pieces in order: see
`BlockOrder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.wire.answers.translating.pieces import AnswerBlock, BlockBegins, WholeAnswer


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
