"""Write Anthropic's answers: a message of blocks; what was used stands at its end.

write_anthropic: after writer. Thinking is written unsigned: its signature is the provider's who
thought it, and Anthropic would refuse one of another.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.answers.anthropic import named
from holdfast.wire.answers.translating.pieces import AnswerBlock, BlockBegins, Stop, WholeAnswer
from holdfast.wire.answers.translating.usages import to_anthropic
from holdfast.wire.answers.translating.writer import AnswerWriter
from holdfast.wire.values import as_json

_STOPS: dict[Stop, str] = {
    "end": "end_turn",
    "length": "max_tokens",
    "calls": "tool_use",
    "sequence": "stop_sequence",
    "filtered": "refusal",
}
_DELTAS = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


def whole(answer: WholeAnswer) -> dict[str, Any]:
    """A complete answer in one piece."""
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


def _stop(answer: WholeAnswer) -> dict[str, Any]:
    refused = answer.stop == "end" and any(block.kind == "refusal" for block in answer.blocks)
    reason = "refusal" if refused else _STOPS[answer.stop]
    return {"stop_reason": reason, "stop_sequence": answer.sequence}


class AnthropicWriter(AnswerWriter):
    """Blocks are numbered, each with a start and a stop."""

    def begin(self, answer: WholeAnswer) -> list[bytes]:
        """Begin with the empty message, and its input where that is known."""
        self._number = -1
        self._delta = _DELTAS["text"]
        empty = {**whole(answer), "content": [], "stop_reason": None}
        return [named({"type": "message_start", "message": empty})]

    def open(self, block: BlockBegins) -> list[bytes]:
        """Begin a block."""
        self._number += 1
        self._delta = _DELTAS[block.kind]
        empty = _block(AnswerBlock(block.kind, "", block.id, block.name))
        start = {"type": "content_block_start", "index": self._number, "content_block": empty}
        return [named(start)]

    def grow(self, text: str) -> list[bytes]:
        """Go on with the block."""
        kind, member = self._delta
        delta = {"type": kind, member: text}
        value = {"type": "content_block_delta", "index": self._number, "delta": delta}
        return [named(value)]

    def close(self, block: AnswerBlock) -> list[bytes]:
        """End the block."""
        return [named({"type": "content_block_stop", "index": self._number})]

    def end(self, answer: WholeAnswer) -> list[bytes]:
        """End with the reason and the usage of the whole message."""
        usage = to_anthropic(answer.usage)
        delta = {"type": "message_delta", "delta": _stop(answer), "usage": usage}
        return [named(delta), named({"type": "message_stop"})]
