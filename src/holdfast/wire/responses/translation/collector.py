"""Assemble the pieces of a response into a complete one."""

from __future__ import annotations

import msgspec

from holdfast.wire.responses.translation.pieces import (
    AnswerBegins,
    AnswerBlock,
    AnswerFails,
    BlockBegins,
    BlockEnds,
    BlockGrows,
    CompletePieces,
    ModelStops,
    Piece,
    Stop,
    UsageReported,
    bare_id,
)


class Collector:
    """Collects the pieces of a response; `answer` is the response so far."""

    def __init__(self, model: str, created: int = 0) -> None:
        self._answer = CompletePieces(id="answer", model=model, created=created)
        self._blocks: list[AnswerBlock] = []
        self._open = BlockBegins("text")
        self._pieces: list[str] = []
        self.failure: AnswerFails | None = None
        self.stopped = False
        """Whether the model has stated why it stopped."""

    def take(self, piece: Piece) -> None:
        """Add a piece."""
        match piece:
            case AnswerBegins():
                self._set(
                    id=bare_id(piece.id) or self._answer.id,
                    created=self._answer.created or piece.created,
                )
            case BlockBegins():
                self._open, self._pieces = piece, []
            case BlockGrows():
                self._pieces.append(piece.text)
            case BlockEnds():
                opened = self._open
                words = "".join(self._pieces)
                self._blocks.append(AnswerBlock(opened.kind, words, opened.id, opened.name))
            case ModelStops():
                self.stopped = True
                self._set(stop=piece.reason, sequence=piece.sequence)
            case UsageReported():
                self._set(usage=piece.spent)
            case AnswerFails():
                self.failure = piece

    def _set(self, **fields: object) -> None:
        self._answer = msgspec.structs.replace(self._answer, **fields)

    @property
    def latest(self) -> AnswerBlock:
        """Return the last completed block."""
        return self._blocks[-1]

    @property
    def head(self) -> CompletePieces:
        """Return the response without its blocks."""
        return self._answer

    @property
    def answer(self) -> CompletePieces:
        """Return the response so far."""
        answer = msgspec.structs.replace(self._answer, blocks=tuple(self._blocks))
        return msgspec.structs.replace(answer, stop=_true_stop(answer))


def _true_stop(answer: CompletePieces) -> Stop:
    """Return why the model stopped; Gemini and some services report tool calls as a normal end."""
    if answer.stop == "end" and answer.calls:
        return "calls"
    return "end" if answer.stop == "calls" and not answer.calls else answer.stop
