"""Pydantic AI's messages, written as those of OpenAI's chat and read back where they were edited.

pydantic_form: before pydantic_ai. A request of theirs is several messages of the dialect, one for
each part. A part that was not edited comes back as the very object it was, with all that the
dialect has no words for.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

Value = dict[str, Any]
"""A message of the dialect."""


class PydanticForm:
    """How messages of Pydantic AI are written, and read back."""

    dialect = "openai-chat"

    def write(self, message: ModelMessage) -> Sequence[Mapping[str, Any]]:
        """A request as a message for each part, a response as one."""
        if isinstance(message, ModelResponse):
            return [_response(message)]
        return [value for part in message.parts for value in _request_part(part)]

    def read(self, parts: Sequence[tuple[Any, ModelMessage | None]]) -> Sequence[ModelMessage]:
        """What goes out instead of one message, or a digest."""
        messages: list[ModelMessage] = []
        for value, like in parts:
            if value["role"] == "assistant":
                messages.append(_read_response(value, like))
                continue
            part = _read_part(value, like)
            last = messages[-1] if messages else None
            if isinstance(last, ModelRequest):
                last.parts = [*last.parts, part]
            elif isinstance(like, ModelRequest):
                messages.append(replace(like, parts=[part]))
            else:
                messages.append(ModelRequest([part]))
        return messages


# --- written -------------------------------------------------------------------------------------


def _request_part(part: ModelRequestPart) -> Iterator[Value]:
    if isinstance(part, SystemPromptPart):
        yield {"role": "system", "content": part.content}
    elif isinstance(part, UserPromptPart):
        yield {"role": "user", "content": _user_content(part.content)}
    elif isinstance(part, ToolReturnPart):
        yield _result(part.tool_call_id, part.model_response_str())
    elif isinstance(part, RetryPromptPart):
        if part.tool_name is None:
            yield {"role": "user", "content": part.model_response()}
        else:
            yield _result(part.tool_call_id, part.model_response())
    # Other parts say which tools came or went: the list of tools says it to us.


def _result(call_id: str, text: str) -> Value:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _user_content(content: str | Sequence[Any]) -> str | list[Value]:
    return content if isinstance(content, str) else [_user_part(part) for part in content]


def _user_part(part: Any) -> Value:
    if isinstance(part, str | TextContent):
        return {"type": "text", "text": part if isinstance(part, str) else part.content}
    if isinstance(part, ImageUrl):
        return {"type": "image_url", "image_url": {"url": part.url}}
    if isinstance(part, BinaryContent):
        data = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
        if part.is_image:
            return {"type": "image_url", "image_url": {"url": data}}
        return {"type": "file", "file": {"filename": part.media_type, "file_data": data}}
    return {"type": "file", "file": {"file_id": getattr(part, "url", type(part).__name__)}}


def _response(message: ModelResponse) -> Value:
    value: Value = {"role": "assistant", "content": None}
    texts, thoughts, calls = [], [], []
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, ThinkingPart):
            thoughts.append(part.content)
        elif isinstance(part, ToolCallPart):
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "type": "function", "function": function})
    if texts or not calls:
        value["content"] = "".join(texts)
    if any(thoughts):
        value["reasoning_content"] = "".join(thoughts)
    if calls:
        value["tool_calls"] = calls
    return value


# --- read back -----------------------------------------------------------------------------------


def _read_part(value: Value, like: ModelMessage | None) -> ModelRequestPart:
    """A part as it was, or with what it says now."""
    for part in like.parts if isinstance(like, ModelRequest) else ():
        if any(written == value for written in _request_part(part)):
            return part
        if isinstance(part, ToolReturnPart | RetryPromptPart) and _answers(value, part):
            return replace(part, content=value["content"])
    if value["role"] == "system":
        return SystemPromptPart(value["content"])
    return UserPromptPart(_read_content(value["content"]))


def _answers(value: Value, part: ToolReturnPart | RetryPromptPart) -> bool:
    return bool(value.get("tool_call_id") == part.tool_call_id)


def _read_content(content: str | Sequence[Value]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def _read_response(value: Value, like: ModelMessage | None) -> ModelResponse:
    """A response with what it says now; what did not change are the objects they were."""
    own = like if isinstance(like, ModelResponse) else ModelResponse([])
    was = _response(own)
    if value == was:
        return own
    calls = {call["id"]: call for call in value.get("tool_calls") or ()}
    texts = [TextPart(_read_content(value["content"]))] if value.get("content") else []
    parts: list[ModelResponsePart] = []
    for part in own.parts:
        if isinstance(part, TextPart):
            parts += texts  # the dialect has one for all of them: where the first stood
            texts = []
        elif isinstance(part, ToolCallPart):
            if (call := calls.pop(part.tool_call_id, None)) is not None:
                parts.append(_read_call(call, part))
        elif not isinstance(part, ThinkingPart) or _thinks(value) == _thinks(was):
            parts.append(part)  # thinking is signed: it goes out as it came, or not at all
    return replace(own, parts=[*parts, *texts, *(_read_call(call) for call in calls.values())])


def _thinks(value: Value) -> object:
    return value.get("reasoning_content")


def _read_call(call: Value, part: ToolCallPart | None = None) -> ToolCallPart:
    function = call["function"]
    if part is not None and part.args_as_json_str() == function["arguments"]:
        return part
    return ToolCallPart(function["name"], function["arguments"], call["id"])
