"""Read and write OpenAI's Responses: items that are added, extended and completed.

Parts missing from a stream are taken from the completed item, and missing items from the response
that ends the stream, so a complete response is read as that last event. Thinking is written as the
summary of a reasoning item, because encrypted content belongs to the provider that created it.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.responses.anthropic import named_event
from holdfast.wire.responses.openai_responses import (
    call_added,
    call_delta,
    call_done,
    message_added,
    message_delta,
    message_done,
    message_item,
)
from holdfast.wire.responses.shared import dicts, text
from holdfast.wire.responses.translation.pieces import (
    AnswerBlock,
    AnswerEnds,
    BlockBegins,
    CompletePieces,
    Kind,
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
from holdfast.wire.responses.translation.usages import from_responses, to_responses
from holdfast.wire.values import inner, take

_STOPS: dict[str, Stop] = {
    "completed": "end",
    "max_output_tokens": "length",
    "content_filter": "filtered",
}
# Events with a piece of a text or all of it: the block's kind, the field that numbers it inside its
# item, and the field with the complete text.
_TEXTS: dict[str, tuple[Kind, str, str]] = {
    "response.output_text": ("text", "content_index", "text"),
    "response.refusal": ("refusal", "content_index", "refusal"),
    "response.reasoning_summary_text": ("thinking", "summary_index", "text"),
    "response.reasoning_text": ("thinking", "content_index", "text"),
}
_INPUTS = {
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}
_CALLS: dict[str, tuple[Kind, str]] = {
    "function_call": ("call", "arguments"),
    "custom_tool_call": ("custom", "input"),
}
_SILENT = frozenset(
    f"response.{name}"
    for name in (
        "created queued in_progress content_part.added content_part.done "
        "reasoning_summary_part.added reasoning_summary_part.done"
    ).split()
)
Key = tuple[Any, ...]


class ResponsesReader(AnswerReader):
    """Tracks which parts of each item were received."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._seen: set[Key] = set()
        """Parts of which something was received."""
        self._parts: dict[int, list[Key]] = {}
        """Open parts of each item."""
        self._done: set[int] = set()

    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Append the pieces of an event, or of a complete response, to `out`."""
        kind = text(value.get("type"))
        if kind == "error" or value.get("error"):
            out.append(failure(value.get("error") or value))
            return
        if value.get("object") == "response":
            self._end(value, out)
            return
        response = inner(value, "response")
        if response:
            self.begin(response.get("id"), response.get("created_at"), out)
        stem, _, last = kind.rpartition(".")
        index = _number(value.get("output_index"))
        if stem in _TEXTS and last in ("delta", "done"):
            self._text(stem, index, value, out)
        elif stem in _INPUTS and last in ("delta", "done"):
            self._input(index, value, _INPUTS[stem], out)
        elif kind == "response.output_item.added":
            self._add(index, inner(value, "item"), out)
        elif kind == "response.output_item.done":
            self._finish_item(index, inner(value, "item"), out)
        elif last in ("completed", "incomplete", "failed", "cancelled") and response:
            self._end(response, out)
        elif "annotation" in kind:
            self.losses.add(CITATIONS)
        elif kind not in _SILENT and not _belongs_to_foreign_item(kind):
            self.losses.add("the event", kind or "without a type")

    # --- growing items
    # -----------------------------------------------------------------------------

    def _text(self, stem: str, index: int, value: dict[str, Any], out: list[Piece]) -> None:
        kind, number, complete_key = _TEXTS[stem]
        key = (index, kind, number, _number(value.get(number)))
        if value.get("logprobs"):
            self.losses.add(LOGPROBS)
        self._say(key, text(value.get("delta")), out)
        if complete_key in value:
            self._say_whole(key, text(value[complete_key]), out)
            self.blocks.close(key, out)

    def _say(self, key: Key, words: str, out: list[Piece]) -> None:
        if words and key not in self._seen:
            self._seen.add(key)
            self._parts.setdefault(key[0], []).append(key)
            self.blocks.open(key, BlockBegins(key[1]), out)
        self.blocks.grow(key, words, out)

    def _say_whole(self, key: Key, words: str, out: list[Piece]) -> None:
        """Append a text of which no piece was received."""
        if key not in self._seen:
            self._say(key, words, out)

    def _add(self, index: int, item: dict[str, Any], out: list[Piece]) -> None:
        native = text(item.get("type"))
        if native in _CALLS and (index, "call") not in self._seen:
            self._seen.add((index, "call"))
            self._parts.setdefault(index, []).append((index, "call"))
            name = text(item.get("name"))
            id_ = text(item.get("call_id")) or call_id(self.id, len(self._seen), name)
            self.blocks.open((index, "call"), BlockBegins(_CALLS[native][0], id_, name), out)

    def _input(
        self, index: int, value: dict[str, Any], complete_key: str, out: list[Piece]
    ) -> None:
        key = (index, "call")
        words = text(value.get("delta"))
        if not words and (index, "input") not in self._seen:
            words = text(value.get(complete_key))
        if words:
            self._seen.add((index, "input"))
        self.blocks.grow(key, words, out)

    # --- completed items
    # ---------------------------------------------------------------------------

    def _finish_item(self, index: int, item: dict[str, Any], out: list[Piece]) -> None:
        """Append the missing pieces of an item and end its blocks."""
        if index in self._done:
            return
        self._done.add(index)
        match item.get("type"):
            case "message":
                self._rest_of_message(index, item, out)
            case "reasoning":
                self._rest_of_reasoning(index, item, out)
            case "function_call" | "custom_tool_call" as native:
                self._add(index, item, out)
                member = _CALLS[native][1]
                self._input(index, item, member, out)
                if (index, "input") not in self._seen and native == "function_call":
                    self.blocks.grow((index, "call"), "{}", out)
            case native:
                self.losses.add("items of type", text(native) or "unknown")
        for key in self._parts.pop(index, ()):
            self.blocks.close(key, out)

    def _rest_of_message(self, index: int, item: dict[str, Any], out: list[Piece]) -> None:
        for number, part in enumerate(dicts(item.get("content"))):
            if part.get("annotations"):
                self.losses.add(CITATIONS)
            if part.get("logprobs"):
                self.losses.add(LOGPROBS)
            kind: Kind = "refusal" if part.get("type") == "refusal" else "text"
            words = text(part.get("refusal" if kind == "refusal" else "text"))
            self._say_whole((index, kind, "content_index", number), words, out)

    def _rest_of_reasoning(self, index: int, item: dict[str, Any], out: list[Piece]) -> None:
        if item.get("encrypted_content"):
            self.losses.add(SIGNATURES)
        for member, number_of in (("summary", "summary_index"), ("content", "content_index")):
            for number, part in enumerate(dicts(item.get(member))):
                key = (index, "thinking", number_of, number)
                self._say_whole(key, text(part.get("text")), out)

    def _end(self, response: dict[str, Any], out: list[Piece]) -> None:
        self.begin(response.get("id"), response.get("created_at"), out)
        for index, item in enumerate(dicts(response.get("output"))):
            self._finish_item(index, item, out)
        self.blocks.close_all(out)
        if isinstance(response.get("usage"), dict):
            out.append(UsageReported(from_responses(response["usage"])))
        status = text(response.get("status"))
        if status in ("failed", "cancelled"):
            out.append(failure(response.get("error") or "The response was cancelled."))
            return
        reason = take(response, "incomplete_details", "reason")
        self.stop(reason or status or "completed", _STOPS, out)
        out.append(AnswerEnds())


def _belongs_to_foreign_item(kind: str) -> bool:
    """Return whether an event belongs to a provider-run tool, whose item is reported at its end."""
    return "_call" in kind or kind.startswith("response.mcp_")


def _number(value: Any) -> int:
    """Return the number of an item or part; 0 if a broken stream lacks it."""
    return value if isinstance(value, int) else 0


_INCOMPLETE = {"length": "max_output_tokens", "filtered": "content_filter"}


def whole(answer: CompletePieces) -> dict[str, Any]:
    """Return a complete response."""
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
    """Writes numbered events, each with the position of its item."""

    def begin(self, answer: CompletePieces) -> list[bytes]:
        """Return the first events: the empty response twice, as the provider sends it."""
        self._id = answer.id
        self._events = 0
        self._number = -1
        self._item: dict[str, Any] = {}
        empty = {**whole(answer), "status": "in_progress", "output": [], "usage": None}
        kinds = ("response.created", "response.in_progress")
        return self._numbered(*({"type": kind, "response": empty} for kind in kinds))

    def open(self, block: BlockBegins) -> list[bytes]:
        """Return the events that add an item."""
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
        """Return the event that extends the item."""
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
        """Return the events that complete an item."""
        item = _item(block, self._id, self._number)
        match item["type"]:
            case "message":
                return self._numbered(*message_done(item, self._number))
            case "reasoning":
                return self._numbered(*_reasoning_done(item, self._number))
            case _:
                return self._numbered(*call_done(item, self._number))

    def end(self, answer: CompletePieces) -> list[bytes]:
        """Return the final event with the complete response."""
        response = whole(answer)
        return self._numbered({"type": f"response.{response['status']}", "response": response})

    def _numbered(self, *values: dict[str, Any]) -> list[bytes]:
        first = self._events
        self._events += len(values)
        return [
            named_event({**value, "sequence_number": number})
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
