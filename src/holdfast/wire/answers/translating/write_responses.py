"""Write OpenAI's Responses: items of which each is added, grows and is done, all numbered.

write_responses: after writer. The last event repeats the whole response. Thinking is the summary
of a reasoning item: the sealed content is the provider's who thought it.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.answers.anthropic import named
from holdfast.wire.answers.openai_responses import (
    call_added,
    call_delta,
    call_done,
    message_added,
    message_delta,
    message_done,
    message_item,
)
from holdfast.wire.answers.translating.pieces import AnswerBlock, BlockBegins, WholeAnswer
from holdfast.wire.answers.translating.usages import to_responses
from holdfast.wire.answers.translating.writer import AnswerWriter

_INCOMPLETE = {"length": "max_output_tokens", "filtered": "content_filter"}


def whole(answer: WholeAnswer) -> dict[str, Any]:
    """A complete answer in one piece."""
    reason = _INCOMPLETE.get(answer.stop)
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": answer.model,
        "output": [_item(block, answer.id, n) for n, block in enumerate(answer.blocks)],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": to_responses(answer.usage),
    }


def _item(block: AnswerBlock, answer_id: str, number: int) -> dict[str, Any]:
    tail = f"{answer_id}_{number}"
    if block.kind == "thinking":
        summary = [{"type": "summary_text", "text": block.text}]
        return {"id": f"rs_{tail}", "type": "reasoning", "summary": summary}
    if block.kind in ("text", "refusal"):
        kind = "refusal" if block.kind == "refusal" else "output_text"
        return message_item(f"msg_{tail}", block.text, kind)
    native, member, prefix = (
        ("custom_tool_call", "input", "ctc")
        if block.kind == "custom"
        else ("function_call", "arguments", "fc")
    )
    return {
        "id": f"{prefix}_{tail}",
        "type": native,
        "status": "completed",
        "call_id": block.id,
        "name": block.name,
        member: block.text,
    }


class ResponsesWriter(AnswerWriter):
    """Events are numbered, and each names the item that it belongs to."""

    def begin(self, answer: WholeAnswer) -> list[bytes]:
        """Begin with the empty response, twice, as the provider does."""
        self._id = answer.id
        self._events = 0
        self._number = -1
        self._item: dict[str, Any] = {}
        empty = {**whole(answer), "status": "in_progress", "output": [], "usage": None}
        kinds = ("response.created", "response.in_progress")
        return self._numbered(*({"type": kind, "response": empty} for kind in kinds))

    def open(self, block: BlockBegins) -> list[bytes]:
        """Add an item."""
        self._number += 1
        empty = AnswerBlock(block.kind, "", block.id, block.name)
        self._item = _item(empty, self._id, self._number)
        match self._item["type"]:
            case "message":
                return self._numbered(*message_added(self._item, self._number))
            case "reasoning":
                return self._numbered(*_reasoning_added(self._item, self._number))
            case _:
                return self._numbered(call_added(self._item, self._number))

    def grow(self, text: str) -> list[bytes]:
        """Go on with the item."""
        match self._item["type"]:
            case "message":
                return self._numbered(message_delta(self._item, self._number, text))
            case "reasoning":
                at = _summary(self._item, self._number)
                kind = "response.reasoning_summary_text.delta"
                return self._numbered({"type": kind, **at, "delta": text})
            case _:
                return self._numbered(call_delta(self._item, self._number, text))

    def close(self, block: AnswerBlock) -> list[bytes]:
        """Tell that the item is done, with all of it."""
        item = _item(block, self._id, self._number)
        match item["type"]:
            case "message":
                return self._numbered(*message_done(item, self._number))
            case "reasoning":
                return self._numbered(*_reasoning_done(item, self._number))
            case _:
                return self._numbered(*call_done(item, self._number))

    def end(self, answer: WholeAnswer) -> list[bytes]:
        """End with the whole response."""
        response = whole(answer)
        return self._numbered({"type": f"response.{response['status']}", "response": response})

    def _numbered(self, *values: dict[str, Any]) -> list[bytes]:
        first = self._events
        self._events += len(values)
        return [
            named({**value, "sequence_number": number})
            for number, value in enumerate(values, start=first)
        ]


def _summary(item: dict[str, Any], index: int) -> dict[str, Any]:
    return {"item_id": item["id"], "output_index": index, "summary_index": 0}


def _reasoning_added(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    empty = {**item, "summary": []}
    part = {"type": "summary_text", "text": ""}
    begun = {"type": "response.reasoning_summary_part.added", **_summary(item, index)}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": empty},
        {**begun, "part": part},
    ]


def _reasoning_done(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    [part] = item["summary"]
    at = _summary(item, index)
    return [
        {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]},
        {"type": "response.reasoning_summary_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]
