"""Read Gemini's answers: chunks whose parts are pieces of text, thoughts and whole calls.

read_gemini: after reader. A whole answer is one chunk. Nothing says that no chunk follows: the end
of the stream does.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.answers.gemini import whole_calls
from holdfast.wire.answers.shared import dicts, text
from holdfast.wire.answers.translating.pieces import (
    BlockBegins,
    Losses,
    Piece,
    Stop,
    UsageReported,
    call_id,
)
from holdfast.wire.answers.translating.reader import (
    CITATIONS,
    LOGPROBS,
    SIGNATURES,
    AnswerReader,
    failure,
)
from holdfast.wire.answers.translating.usages import from_gemini
from holdfast.wire.gemini import SIGNATURES as SIGNED
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

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
    """Gives calls that have no id one of their own."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._usage: dict[str, Any] = {}
        self._growing: list[dict[str, Any]] = []
        """The parts of a call that comes in several."""
        self._calls = 0

    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Put the pieces of a chunk, or of a whole answer, into `out`."""
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
        """Give a call whose last part never came."""
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
