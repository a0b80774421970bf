"""Translate responses between dialects, with one reader and one writer each and shared pieces.

`responses.translate` connects a reader with a writer; `responses.compose` uses only the writers,
for the offline model.
"""

from collections.abc import Callable
from typing import Any

from holdfast.wire.responses.translating import anthropic, chat, gemini, responses
from holdfast.wire.responses.translating.collecting import Collector
from holdfast.wire.responses.translating.pieces import (
    AnswerBegins,
    AnswerBlock,
    AnswerEnds,
    AnswerFails,
    BlockBegins,
    BlockEnds,
    BlockGrows,
    Losses,
    ModelStops,
    Piece,
    Spent,
    Stop,
    UsageReported,
    WholeAnswer,
)
from holdfast.wire.responses.translating.reader import AnswerReader, AnswerWriter, failure

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
WHOLE: dict[str, Callable[[WholeAnswer], dict[str, Any]]] = {
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
    "Losses",
    "ModelStops",
    "Piece",
    "Spent",
    "Stop",
    "UsageReported",
    "WholeAnswer",
    "failure",
]
