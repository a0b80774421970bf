"""Write complete or streamed responses of the offline model in any dialect.

Ids and times are supplied by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast.wire.responses.shared import ModelCall
from holdfast.wire.responses.translation import (
    WHOLE,
    WRITERS,
    AnswerBlock,
    BlockBegins,
    CompletePieces,
    ResponseUsage,
    Stop,
)
from holdfast.wire.strict import encode


class OfflineResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The offline model's response, independent of dialects."""

    id: str
    """Letters and digits; each dialect adds its own prefix."""
    model: str
    created: int
    """Seconds since 1970."""
    pieces: tuple[str, ...] = ()
    """Text in the pieces that a stream sends."""
    calls: tuple[ModelCall, ...] = ()
    input_tokens: int
    output_tokens: int
    cut: bool = False
    """Whether the text ended at the length limit."""

    @property
    def text(self) -> str:
        """Return the complete text."""
        return "".join(self.pieces)

    def __repr__(self) -> str:
        return f"<Said, {len(self.pieces)} pieces, {len(self.calls)} calls>"


def compose_response(said: OfflineResponse, dialect: str) -> bytes:
    """Return a response as one body."""
    return encode(WHOLE[dialect](_whole(said)))


def stream_response(said: OfflineResponse, dialect: str, *, usage: bool = True) -> Iterator[bytes]:
    """Yield a response as stream events.

    OpenAI chat reports usage only to clients that request it (`stream_options.include_usage`); pass
    `usage=False` for others.
    """
    answer = _whole(said)
    writer = WRITERS[dialect](include_usage=usage)
    begun = ResponseUsage(input=said.input_tokens, output=0)
    yield from writer.begin(msgspec.structs.replace(answer, blocks=(), usage=begun))
    for block in answer.blocks:
        yield from writer.open(BlockBegins(block.kind, block.id, block.name))
        for piece in said.pieces if block.kind == "text" else (block.text,):
            yield from writer.grow(piece)
        yield from writer.close(block)
    yield from writer.end(answer)


def _whole(said: OfflineResponse) -> CompletePieces:
    text = [AnswerBlock("text", said.text)] if said.text else []
    calls = [AnswerBlock("call", call.arguments, call.id, call.name) for call in said.calls]
    stop: Stop = "calls" if said.calls else "length" if said.cut else "end"
    return CompletePieces(
        id=said.id,
        model=said.model,
        created=said.created,
        blocks=(*text, *calls),
        stop=stop,
        usage=ResponseUsage(input=said.input_tokens, output=said.output_tokens),
    )
