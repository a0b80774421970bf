"""Read and write Gemini's responses: chunks with parts of text, thoughts and complete calls.

A complete response is a single chunk, and only the end of the stream shows that no chunk follows.
Completed calls are written together with what follows them, as Gemini does at the end.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.gemini import SIGNATURES as SIGNED
from holdfast.wire.responses.gemini import whole_calls
from holdfast.wire.responses.shared import dicts, text
from holdfast.wire.responses.sse import write_event
from holdfast.wire.responses.translation.pieces import (
    AnswerBlock,
    BlockBegins,
    CompletePieces,
    Losses,
    Piece,
    Stop,
    UsageReported,
    call_id,
)
from holdfast.wire.responses.translation.reader import (
    CITATIONS,
    LOGPROBS,
    SIGNATURES,
    AnswerReader,
    AnswerWriter,
    failure,
)
from holdfast.wire.responses.translation.usages import from_gemini, to_gemini
from holdfast.wire.strict import encode
from holdfast.wire.values import as_json, inner, take

_FILTERS = (
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT "
    "MODEL_ARMOR"
)
_STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_FILTERS.split(), "filtered"),
}
_LOSSES = {
    "groundingMetadata": CITATIONS,
    "citationMetadata": CITATIONS,
    "urlContextMetadata": CITATIONS,
    "logprobsResult": LOGPROBS,
}


class GeminiReader(AnswerReader):
    """Assigns ids to calls without one."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._usage: dict[str, Any] = {}
        self._growing: list[dict[str, Any]] = []
        """Parts of a call received in several parts."""
        self._calls = 0

    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Append the pieces of a chunk, or of a complete response, to `out`."""
        if value.get("error"):
            out.append(failure(value["error"]))
            return
        self.begin(value.get("responseId"), None, out)
        if isinstance(value.get("usageMetadata"), dict):
            self._usage |= value["usageMetadata"]
            out.append(UsageReported(from_gemini(self._usage)))
        for candidate in dicts(value.get("candidates")):
            if candidate.get("index", 0) not in (0, None):
                self.losses.add("further candidates")
                continue
            self._candidate(candidate, out)
        if take(value, "promptFeedback", "blockReason"):  # the prompt was refused
            self.stop("SAFETY", _STOPS, out)

    def finish(self) -> list[Piece]:
        """Return the pieces of a call whose last part is missing."""
        out: list[Piece] = []
        self._give_growing(out)
        return [*out, *super().finish()]

    def _candidate(self, candidate: dict[str, Any], out: list[Piece]) -> None:
        for part in dicts(inner(candidate, "content").get("parts")):
            self._part(part, out)
        for key, loss in _LOSSES.items():
            if candidate.get(key):
                self.losses.add(loss)
        if stop := text(candidate.get("finishReason")):
            self._give_growing(out)
            self.hush(out)
            self.stop(stop, _STOPS, out)

    def _part(self, part: dict[str, Any], out: list[Piece]) -> None:
        if any(part.get(key) for key in SIGNED):
            self.losses.add(SIGNATURES)
        if isinstance(part.get("functionCall"), dict):
            self._call(part, out)
        elif isinstance(part.get("text"), str):
            self.say("thinking" if part.get("thought") is True else "text", part["text"], out)
        else:
            kind = next((key for key in part if key not in (*SIGNED, "thought")), "")
            media = take(part, kind, "mimeType").partition("/")[0]
            self.losses.add("parts of type", media or kind)

    def _call(self, part: dict[str, Any], out: list[Piece]) -> None:
        call = part["functionCall"]
        if call.get("name"):
            self._give_growing(out)
        self._growing.append(part)
        if call.get("willContinue") is not True:
            self._give_growing(out)

    def _give_growing(self, out: list[Piece]) -> None:
        parts, self._growing = self._growing, []
        for part in whole_calls(parts):
            call = part["functionCall"]
            name = text(call.get("name"))
            arguments = encode(inner(call, "args")).decode()
            self._calls += 1
            id_ = text(call.get("id")) or call_id(self.id, self._calls, name, arguments)
            self.hush(out)
            self.blocks.open(("call", self._calls), BlockBegins("call", id_, name), out)
            self.blocks.grow(("call", self._calls), arguments, out)
            self.blocks.close(("call", self._calls), out)


_STOP_NAMES: dict[Stop, str] = {
    "end": "STOP",
    "length": "MAX_TOKENS",
    "calls": "STOP",
    "sequence": "STOP",
    "filtered": "SAFETY",
}


def whole(answer: CompletePieces) -> dict[str, Any]:
    """Return a complete response."""
    return _ending(answer, [_part(block) for block in answer.blocks])


def _ending(answer: CompletePieces, parts: list[Any]) -> dict[str, Any]:
    # An empty list of parts makes google-genai's chats forget the turn; Gemini sends empty text.
    chunk = _chunk(answer, parts or [{"text": ""}])
    chunk["candidates"][0]["finishReason"] = _STOP_NAMES[answer.stop]
    chunk["usageMetadata"] = to_gemini(answer.usage)
    return chunk


def _chunk(answer: CompletePieces, parts: list[Any]) -> dict[str, Any]:
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
    """Writes text immediately and calls when they are complete."""

    def begin(self, answer: CompletePieces) -> list[bytes]:
        """Start a response; Gemini has no start event."""
        self._answer = answer
        self._kind = "text"
        self._calls: list[Any] = []
        return []

    def open(self, block: BlockBegins) -> list[bytes]:
        """Return waiting calls if the new block is not a call."""
        self._kind = block.kind
        if block.kind == "call" or not self._calls:
            return []
        calls, self._calls = self._calls, []
        return [self._event(calls)]

    def grow(self, text: str) -> list[bytes]:
        """Return a chunk with text."""
        return [] if self._kind == "call" else [self._event([_words(self._kind, text)])]

    def close(self, block: AnswerBlock) -> list[bytes]:
        """Store a call, which is complete now."""
        if block.kind == "call":
            self._calls.append(_part(block))
        return []

    def end(self, answer: CompletePieces) -> list[bytes]:
        """Return the last chunk, with waiting calls, stop reason and usage."""
        return [write_event(encode(_ending(answer, self._calls)))]

    def _event(self, parts: list[Any]) -> bytes:
        return write_event(encode(_chunk(self._answer, parts)))
