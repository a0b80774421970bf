"""Convert Pydantic AI messages to Chat Completions messages, and edited ones back.

One Pydantic AI request becomes several messages, one per part. An unedited part comes back as the
same object, with fields that the dialect does not have.
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
    """Converts messages of Pydantic AI."""

    dialect = "openai-chat"

    def write(self, message: ModelMessage) -> Sequence[Mapping[str, Any]]:
        """Return one message per part of a request, and one for a response."""
        if isinstance(message, ModelResponse):
            return [_response(message)]
        return [value for part in message.parts for value in _request_part(part)]

    def read(self, parts: Sequence[tuple[Any, ModelMessage | None]]) -> Sequence[ModelMessage]:
        """Return the messages that replace one message, or a digest."""
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


# --- writing -------------------------------------------------------------------------------------


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
    # Other parts announce changes of the tools, which are in the list of tools.


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


# --- reading -------------------------------------------------------------------------------------


def _read_part(value: Value, like: ModelMessage | None) -> ModelRequestPart:
    """Return the original part, or a copy with its edited content."""
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
    """Return a response with its edited content; unchanged parts stay the same objects."""
    own = like if isinstance(like, ModelResponse) else ModelResponse([])
    original = _response(own)
    if value == original:
        return own
    calls = {call["id"]: call for call in value.get("tool_calls") or ()}
    texts = [TextPart(_read_content(value["content"]))] if value.get("content") else []
    parts: list[ModelResponsePart] = []
    for part in own.parts:
        if isinstance(part, TextPart):
            parts += texts  # the dialect joins all texts: put them at the place of the first
            texts = []
        elif isinstance(part, ToolCallPart):
            if (call := calls.pop(part.tool_call_id, None)) is not None:
                parts.append(_read_call(call, part))
        elif not isinstance(part, ThinkingPart) or _thinks(value) == _thinks(original):
            parts.append(part)  # thinking is signed: it is sent unchanged or not at all
    return replace(own, parts=[*parts, *texts, *(_read_call(call) for call in calls.values())])


def _thinks(value: Value) -> object:
    return value.get("reasoning_content")


def _read_call(call: Value, part: ToolCallPart | None = None) -> ToolCallPart:
    function = call["function"]
    if part is not None and part.args_as_json_str() == function["arguments"]:
        return part
    return ToolCallPart(function["name"], function["arguments"], call["id"])
