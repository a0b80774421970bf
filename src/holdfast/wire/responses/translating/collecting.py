"""All pieces of an answer put together: what an end repeats, and what a whole answer is made of.

collecting: after pieces. Knows no dialect.
"""

from __future__ import annotations

import msgspec

from holdfast.wire.responses.translating.pieces import (
    AnswerBegins,
    AnswerBlock,
    AnswerFails,
    BlockBegins,
    BlockEnds,
    BlockGrows,
    ModelStops,
    Piece,
    Stop,
    UsageReported,
    WholeAnswer,
    bare_id,
)


class Collector:
    """Takes pieces, one after the other; `answer` is what they are so far."""

    def __init__(self, model: str, created: int = 0) -> None:
        self._answer = WholeAnswer(id="answer", model=model, created=created)
        self._blocks: list[AnswerBlock] = []
        self._open = BlockBegins("text")
        self._pieces: list[str] = []
        self.failure: AnswerFails | None = None
        self.stopped = False
        """The model has said why it stopped."""

    def take(self, piece: Piece) -> None:
        """Take a piece."""
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
        """The block that was completed last."""
        return self._blocks[-1]

    @property
    def head(self) -> WholeAnswer:
        """The answer without what it says."""
        return self._answer

    @property
    def answer(self) -> WholeAnswer:
        """The answer so far."""
        answer = msgspec.structs.replace(self._answer, blocks=tuple(self._blocks))
        return msgspec.structs.replace(answer, stop=_true_stop(answer))


def _true_stop(answer: WholeAnswer) -> Stop:
    """Why the model stopped: Gemini and some services say of calls that the turn is over."""
    if answer.stop == "end" and answer.calls:
        return "calls"
    return "end" if answer.stop == "calls" and not answer.calls else answer.stop
