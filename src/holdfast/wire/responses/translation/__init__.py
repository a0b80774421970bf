"""Translate responses between dialects, with one reader and one writer each and shared pieces.

`responses.translate` connects a reader with a writer; `responses.compose` uses only the writers,
for the offline model.
"""

from collections.abc import Callable
from typing import Any

from holdfast.wire.responses.translation import anthropic, chat, gemini, responses
from holdfast.wire.responses.translation.collector import Collector
from holdfast.wire.responses.translation.pieces import (
    AnswerBegins,
    AnswerBlock,
    AnswerEnds,
    AnswerFails,
    BlockBegins,
    BlockEnds,
    BlockGrows,
    CompletePieces,
    Losses,
    ModelStops,
    Piece,
    ResponseUsage,
    Stop,
    UsageReported,
)
from holdfast.wire.responses.translation.reader import AnswerReader, AnswerWriter, failure

READERS: dict[str, type[AnswerReader]] = {
    "openai-chat": chat.ChatReader,
    "openai-responses": responses.ResponsesReader,
    "anthropic": anthropic.AnthropicReader,
    "gemini": gemini.GeminiReader,
}
WRITERS: dict[str, type[AnswerWriter]] = {
    "openai-chat": chat.ChatWriter,
    "openai-responses": responses.ResponsesWriter,
    "anthropic": anthropic.AnthropicWriter,
    "gemini": gemini.GeminiWriter,
}
WHOLE: dict[str, Callable[[CompletePieces], dict[str, Any]]] = {
    "openai-chat": chat.whole,
    "openai-responses": responses.whole,
    "anthropic": anthropic.whole,
    "gemini": gemini.whole,
}

__all__ = [
    "READERS",
    "WHOLE",
    "WRITERS",
    "AnswerBegins",
    "AnswerBlock",
    "AnswerEnds",
    "AnswerFails",
    "BlockBegins",
    "BlockEnds",
    "BlockGrows",
    "Collector",
    "CompletePieces",
    "Losses",
    "ModelStops",
    "Piece",
    "ResponseUsage",
    "Stop",
    "UsageReported",
    "failure",
]
