"""Answers between dialects: one reader and one writer per dialect, over a small set of pieces.

pieces → usages → reader · writer → (one file each per dialect) → collecting, each using only what
stands before it. `answers.translate` joins a reader and a writer; `answers.compose` uses the
writers alone, for a model of our own.
"""

from collections.abc import Callable
from typing import Any

from holdfast.wire.answers.translating import (
    write_anthropic,
    write_chat,
    write_gemini,
    write_responses,
)
from holdfast.wire.answers.translating.collecting import Collector
from holdfast.wire.answers.translating.pieces import (
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
from holdfast.wire.answers.translating.read_anthropic import AnthropicReader
from holdfast.wire.answers.translating.read_chat import ChatReader
from holdfast.wire.answers.translating.read_gemini import GeminiReader
from holdfast.wire.answers.translating.read_responses import ResponsesReader
from holdfast.wire.answers.translating.reader import AnswerReader, failure
from holdfast.wire.answers.translating.writer import AnswerWriter

READERS: dict[str, type[AnswerReader]] = {
    "openai-chat": ChatReader,
    "openai-responses": ResponsesReader,
    "anthropic": AnthropicReader,
    "gemini": GeminiReader,
}
WRITERS: dict[str, type[AnswerWriter]] = {
    "openai-chat": write_chat.ChatWriter,
    "openai-responses": write_responses.ResponsesWriter,
    "anthropic": write_anthropic.AnthropicWriter,
    "gemini": write_gemini.GeminiWriter,
}
WHOLE: dict[str, Callable[[WholeAnswer], dict[str, Any]]] = {
    "openai-chat": write_chat.whole,
    "openai-responses": write_responses.whole,
    "anthropic": write_anthropic.whole,
    "gemini": write_gemini.whole,
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
