"""Read and write Anthropic's responses: numbered blocks that start, grow and stop.

Thinking is written without a signature, because Anthropic rejects another provider's.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.responses.anthropic import named_event
from holdfast.wire.responses.shared import dicts, text
from holdfast.wire.responses.translation.pieces import (
    AnswerBlock,
    AnswerEnds,
    BlockBegins,
    CompletePieces,
    Kind,
    Losses,
    ModelStops,
    Piece,
    Stop,
    UsageReported,
    call_id,
)
from holdfast.wire.responses.translation.reader import (
    CITATIONS,
    SIGNATURES,
    AnswerReader,
    AnswerWriter,
    failure,
)
from holdfast.wire.responses.translation.usages import from_anthropic, to_anthropic
from holdfast.wire.strict import encode
from holdfast.wire.values import as_json, inner

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "calls",
    "stop_sequence": "sequence",
    "refusal": "filtered",
}
_KINDS: dict[str, Kind] = {"text": "text", "thinking": "thinking", "tool_use": "call"}
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class AnthropicReader(AnswerReader):
    """Tracks open blocks, and the input that came with a call's start."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._usage: dict[str, Any] = {}
        self._inputs: dict[int, str] = {}
        """Input of a call if no piece of it follows."""

    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Append the pieces of an event, or of a complete message, to `out`."""
        match value.get("type"):
            case "message_start":
                self._start(inner(value, "message"), out)
            case "content_block_start":
                self._open(_number(value.get("index")), inner(value, "content_block"), out)
            case "content_block_delta":
                self._grow(_number(value.get("index")), inner(value, "delta"), out)
            case "content_block_stop":
                self._close(_number(value.get("index")), out)
            case "message_delta":
                self._stop(inner(value, "delta"), inner(value, "usage"), out)
            case "message_stop":
                self.blocks.close_all(out)
                out.append(AnswerEnds())
            case "message":
                self._message(value, out)
            case "error":
                out.append(failure(value.get("error")))
            case "ping":
                pass
            case kind:
                self.losses.add("the event", text(kind) or "without a type")

    def _message(self, message: dict[str, Any], out: list[Piece]) -> None:
        self._start(message, out)
        for number, block in enumerate(dicts(message.get("content"))):
            self._open(number, block, out)
            self._close(number, out)
        self._stop(message, {}, out)
        out.append(AnswerEnds())

    def _start(self, message: dict[str, Any], out: list[Piece]) -> None:
        self.begin(message.get("id"), None, out)
        self._used(inner(message, "usage"), out)

    def _used(self, usage: dict[str, Any], out: list[Piece]) -> None:
        # Counts cover the complete message so far; an omitted count stays unchanged.
        self._usage |= {key: count for key, count in usage.items() if count is not None}
        if usage:
            out.append(UsageReported(from_anthropic(self._usage)))

    def _open(self, number: int, block: dict[str, Any], out: list[Piece]) -> None:
        native = text(block.get("type"))
        kind = _KINDS.get(native)
        if kind is None:
            self.losses.add("blocks of type", native or "unknown")
            return
        name = text(block.get("name"))
        if kind == "call":
            id_ = text(block.get("id")) or call_id(self.id, number, name)
            self.blocks.open(number, BlockBegins(kind, id_, name), out)
            self._inputs[number] = encode(inner(block, "input")).decode()
        else:
            self.blocks.open(number, BlockBegins(kind), out)
            self.blocks.grow(number, text(block.get(native)), out)
            self._note(block)

    def _note(self, block: dict[str, Any]) -> None:
        if block.get("signature"):
            self.losses.add(SIGNATURES)
        if block.get("citations"):
            self.losses.add(CITATIONS)

    def _grow(self, number: int, delta: dict[str, Any], out: list[Piece]) -> None:
        native = text(delta.get("type"))
        if native in _DELTAS:
            words = text(delta.get(_DELTAS[native]))
            if words:
                self._inputs.pop(number, None)
            self.blocks.grow(number, words, out)
        elif native == "signature_delta":
            self._note(delta)
        elif native == "citations_delta":
            self.losses.add(CITATIONS)
        elif number in self.blocks:
            self.losses.add("pieces of type", native)

    def _close(self, number: int, out: list[Piece]) -> None:
        self.blocks.grow(number, self._inputs.pop(number, ""), out)
        self.blocks.close(number, out)

    def _stop(self, delta: dict[str, Any], usage: dict[str, Any], out: list[Piece]) -> None:
        if stop := text(delta.get("stop_reason")):
            self.blocks.close_all(out)
            if stop == "stop_sequence":
                out.append(ModelStops("sequence", text(delta.get("stop_sequence")) or None))
            else:
                self.stop(stop, _STOPS, out)
        self._used(usage, out)


def _number(value: Any) -> int:
    """Return a block's number; 0 if a broken stream lacks it."""
    return value if isinstance(value, int) else 0


_STOP_NAMES: dict[Stop, str] = {
    "end": "end_turn",
    "length": "max_tokens",
    "calls": "tool_use",
    "sequence": "stop_sequence",
    "filtered": "refusal",
}
_DELTA_NAMES = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


def whole(answer: CompletePieces) -> dict[str, Any]:
    """Return a complete response."""
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [_block(block) for block in answer.blocks],
        **_stop(answer),
        "usage": to_anthropic(answer.usage),
    }


def _block(block: AnswerBlock) -> dict[str, Any]:
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": block.text, "signature": ""}
    if block.kind == "call":
        arguments = as_json(block.text)
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}
    return {"type": "text", "text": block.text}


def _stop(answer: CompletePieces) -> dict[str, Any]:
    refused = answer.stop == "end" and any(block.kind == "refusal" for block in answer.blocks)
    reason = "refusal" if refused else _STOP_NAMES[answer.stop]
    return {"stop_reason": reason, "stop_sequence": answer.sequence}


class AnthropicWriter(AnswerWriter):
    """Writes numbered blocks, each with a start and a stop."""

    def begin(self, answer: CompletePieces) -> list[bytes]:
        """Return the start of the message, with its input usage if known."""
        self._number = -1
        self._delta = _DELTA_NAMES["text"]
        empty = {**whole(answer), "content": [], "stop_reason": None}
        return [named_event({"type": "message_start", "message": empty})]

    def open(self, block: BlockBegins) -> list[bytes]:
        """Return the start of a block."""
        self._number += 1
        self._delta = _DELTA_NAMES[block.kind]
        empty = _block(AnswerBlock(block.kind, "", block.id, block.name))
        start = {"type": "content_block_start", "index": self._number, "content_block": empty}
        return [named_event(start)]

    def grow(self, text: str) -> list[bytes]:
        """Return an event that extends the block."""
        kind, member = self._delta
        delta = {"type": kind, member: text}
        value = {"type": "content_block_delta", "index": self._number, "delta": delta}
        return [named_event(value)]

    def close(self, block: AnswerBlock) -> list[bytes]:
        """Return the end of the block."""
        return [named_event({"type": "content_block_stop", "index": self._number})]

    def end(self, answer: CompletePieces) -> list[bytes]:
        """Return the end of the message, with stop reason and usage."""
        usage = to_anthropic(answer.usage)
        delta = {"type": "message_delta", "delta": _stop(answer), "usage": usage}
        return [named_event(delta), named_event({"type": "message_stop"})]
