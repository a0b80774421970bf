"""Write Gemini's answers: chunks of parts, in which a call always stands whole.

write_gemini: after writer. Completed calls wait for what follows them: Gemini itself sends its
last ones together with the end.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.answers.sse import write_event
from holdfast.wire.answers.translating.pieces import AnswerBlock, BlockBegins, Stop, WholeAnswer
from holdfast.wire.answers.translating.usages import to_gemini
from holdfast.wire.answers.translating.writer import AnswerWriter
from holdfast.wire.strict import encode
from holdfast.wire.values import as_json

_STOPS: dict[Stop, str] = {
    "end": "STOP",
    "length": "MAX_TOKENS",
    "calls": "STOP",
    "sequence": "STOP",
    "filtered": "SAFETY",
}


def whole(answer: WholeAnswer) -> dict[str, Any]:
    """A complete answer in one piece."""
    return _ending(answer, [_part(block) for block in answer.blocks])


def _ending(answer: WholeAnswer, parts: list[Any]) -> dict[str, Any]:
    # An empty list of parts makes google-genai's chats forget the turn; Gemini sends empty text.
    chunk = _chunk(answer, parts or [{"text": ""}])
    chunk["candidates"][0]["finishReason"] = _STOPS[answer.stop]
    chunk["usageMetadata"] = to_gemini(answer.usage)
    return chunk


def _chunk(answer: WholeAnswer, parts: list[Any]) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id}


def _part(block: AnswerBlock) -> dict[str, Any]:
    if block.kind == "call":
        call = {"id": block.id, "name": block.name, "args": as_json(block.text)}
        return {"functionCall": call}
    return _words(block.kind, block.text)


def _words(kind: str, text: str) -> dict[str, Any]:
    return {"text": text, "thought": True} if kind == "thinking" else {"text": text}


class GeminiWriter(AnswerWriter):
    """Words go out at once, calls when they are complete."""

    def begin(self, answer: WholeAnswer) -> list[bytes]:
        """Begin; there is nothing to say of it."""
        self._answer = answer
        self._kind = "text"
        self._calls: list[Any] = []
        return []

    def open(self, block: BlockBegins) -> list[bytes]:
        """Begin a block; if it is none of a call, those before it are given."""
        self._kind = block.kind
        if block.kind == "call" or not self._calls:
            return []
        calls, self._calls = self._calls, []
        return [self._event(calls)]

    def grow(self, text: str) -> list[bytes]:
        """Go on with words."""
        return [] if self._kind == "call" else [self._event([_words(self._kind, text)])]

    def close(self, block: AnswerBlock) -> list[bytes]:
        """End a block; a call is complete now."""
        if block.kind == "call":
            self._calls.append(_part(block))
        return []

    def end(self, answer: WholeAnswer) -> list[bytes]:
        """End with the last calls, the reason and the usage."""
        return [write_event(encode(_ending(answer, self._calls)))]

    def _event(self, parts: list[Any]) -> bytes:
        return write_event(encode(_chunk(self._answer, parts)))
