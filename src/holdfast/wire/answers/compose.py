"""Write whole answers in a dialect, in one piece or as a stream: for a model of our own.

compose: after the dialects. Ids and times come from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from holdfast.wire.answers.anthropic import named, text_block
from holdfast.wire.answers.openai_chat import chunk
from holdfast.wire.answers.openai_responses import message_events, message_item
from holdfast.wire.answers.shared import Call, load
from holdfast.wire.answers.sse import write_event
from holdfast.wire.strict import encode


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answers, in no dialect."""

    id: str
    """Letters and digits; each dialect puts its own prefix before it."""
    model: str
    created: int
    """Seconds since 1970."""
    pieces: tuple[str, ...] = ()
    """Its text, in the pieces a stream sends."""
    calls: tuple[Call, ...] = ()
    input_tokens: int
    output_tokens: int
    cut: bool = False
    """The text ended because it was long enough."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    def __repr__(self) -> str:
        return f"<Said, {len(self.pieces)} pieces, {len(self.calls)} calls>"


def compose_answer(said: Said, dialect: str) -> bytes:
    """Write an answer in one piece."""
    return encode(_WHOLE[dialect](said))


def stream_answer(said: Said, dialect: str, *, usage: bool = True) -> Iterator[bytes]:
    """Write an answer as a stream, event by event.

    OpenAI's chat reports usage only to clients that ask (`stream_options.include_usage`): for
    others pass `usage=False`.
    """
    if dialect == "openai-chat":
        return _chat_stream(said, usage=usage)
    return _STREAMED[dialect](said)


def _arguments(call: Call) -> Any:
    value = load(call.arguments.encode())
    return value if isinstance(value, dict) else {}


# --- OpenAI chat -------------------------------------------------------------------------------


def _chat_call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chat_stop(said: Said) -> str:
    return "tool_calls" if said.calls else "length" if said.cut else "stop"


def _chat_usage(said: Said) -> dict[str, Any]:
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
    }


def _chat(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.calls:
        message["tool_calls"] = [_chat_call(call) for call in said.calls]
    stop = _chat_stop(said)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    return {
        "id": f"chatcmpl-{said.id}",
        "object": "chat.completion",
        "created": said.created,
        "model": said.model,
        "choices": [choice],
        "usage": _chat_usage(said),
    }


def _chat_stream(said: Said, *, usage: bool) -> Iterator[bytes]:
    identity = {"id": f"chatcmpl-{said.id}", "created": said.created}

    def event(delta: dict[str, Any], stop: str | None = None) -> bytes:
        return write_event(encode(chunk(identity, said.model, delta, stop)))

    yield event({"role": "assistant", "content": ""})
    for piece in said.pieces:
        yield event({"content": piece})
    for n, call in enumerate(said.calls):
        whole = _chat_call(call)
        start = {**whole, "function": {"name": call.name, "arguments": ""}}
        yield event({"tool_calls": [{"index": n, **start}]})
        yield event({"tool_calls": [{"index": n, "function": {"arguments": call.arguments}}]})
    yield event({}, _chat_stop(said))
    if usage:
        last = {**chunk(identity, said.model, {}), "choices": [], "usage": _chat_usage(said)}
        yield write_event(encode(last))
    yield write_event(b"[DONE]")


# --- Anthropic ---------------------------------------------------------------------------------


def _anthropic_stop(said: Said) -> str:
    return "tool_use" if said.calls else "max_tokens" if said.cut else "end_turn"


def _anthropic_call(call: Call, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _anthropic(said: Said) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": said.text}] if said.text else []
    content.extend(_anthropic_call(call, _arguments(call)) for call in said.calls)
    return {
        "id": f"msg_{said.id}",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": content,
        "stop_reason": _anthropic_stop(said),
        "stop_sequence": None,
        "usage": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
    }


def _anthropic_stream(said: Said) -> Iterator[bytes]:
    usage = {"input_tokens": said.input_tokens, "output_tokens": 0}
    empty = {**_anthropic(said), "content": [], "stop_reason": None, "usage": usage}
    yield named({"type": "message_start", "message": empty})
    if said.pieces:
        yield from text_block(0, said.pieces)
    for n, call in enumerate(said.calls, start=1 if said.pieces else 0):
        start = _anthropic_call(call, {})
        yield named({"type": "content_block_start", "index": n, "content_block": start})
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        yield named({"type": "content_block_delta", "index": n, "delta": delta})
        yield named({"type": "content_block_stop", "index": n})
    stop = {"stop_reason": _anthropic_stop(said), "stop_sequence": None}
    spent = {**usage, "output_tokens": said.output_tokens}
    yield named({"type": "message_delta", "delta": stop, "usage": spent})
    yield named({"type": "message_stop"})


# --- OpenAI Responses --------------------------------------------------------------------------


def _items(said: Said) -> list[dict[str, Any]]:
    items = [message_item(f"msg_{said.id}", said.text)] if said.text else []
    items.extend(
        {
            "id": f"fc_{said.id}_{n}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for n, call in enumerate(said.calls)
    )
    return items


def _responses(said: Said) -> dict[str, Any]:
    usage = {
        "input_tokens": said.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": said.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": said.input_tokens + said.output_tokens,
    }
    return {
        "id": f"resp_{said.id}",
        "object": "response",
        "created_at": said.created,
        "status": "incomplete" if said.cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if said.cut else None,
        "instructions": None,
        "metadata": {},
        "model": said.model,
        "output": _items(said),
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": usage,
    }


def _responses_stream(said: Said) -> Iterator[bytes]:
    for number, value in enumerate(_responses_events(said)):
        yield named({**value, "sequence_number": number})


def _responses_events(said: Said) -> Iterator[dict[str, Any]]:
    whole = _responses(said)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        if item["type"] == "message":
            yield from message_events(item, index, said.pieces)
            continue
        at = {"item_id": item["id"], "output_index": index}
        empty = {**item, "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        kind = "response.function_call_arguments"
        yield {"type": f"{kind}.delta", **at, "delta": item["arguments"]}
        yield {"type": f"{kind}.done", **at, "name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


# --- Gemini ------------------------------------------------------------------------------------


def _gemini_chunk(said: Said, parts: list[Any], *, ends: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if ends:
        candidate["finishReason"] = "MAX_TOKENS" if said.cut else "STOP"
    usage = {"promptTokenCount": said.input_tokens}
    spent = said.output_tokens if ends else 0
    return {
        "candidates": [candidate],
        "usageMetadata": {
            **usage,
            "candidatesTokenCount": spent,
            "totalTokenCount": said.input_tokens + spent,
        },
        "modelVersion": said.model,
        "responseId": said.id,
    }


def _gemini_calls(said: Said) -> list[Any]:
    return [
        {"functionCall": {"id": call.id, "name": call.name, "args": _arguments(call)}}
        for call in said.calls
    ]


def _gemini(said: Said) -> dict[str, Any]:
    text: list[Any] = [{"text": said.text}] if said.text else []
    return _gemini_chunk(said, [*text, *_gemini_calls(said)], ends=True)


def _gemini_stream(said: Said) -> Iterator[bytes]:
    for piece in said.pieces:
        yield write_event(encode(_gemini_chunk(said, [{"text": piece}], ends=False)))
    yield write_event(encode(_gemini_chunk(said, _gemini_calls(said), ends=True)))


_WHOLE: dict[str, Callable[[Said], dict[str, Any]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
_STREAMED: dict[str, Callable[[Said], Iterator[bytes]]] = {
    "openai-responses": _responses_stream,
    "anthropic": _anthropic_stream,
    "gemini": _gemini_stream,
}
