"""OpenAI Chat Completions, and the many services that use it (Azure, Ollama, vLLM)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.wire.blocks import (
    Block,
    Media,
    Opaque,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from holdfast.wire.dialect import Entry, role_of, wrong_type
from holdfast.wire.json_places import Place
from holdfast.wire.media import CarriedMedia, write_media
from holdfast.wire.values import join_text, json_text, parse_arguments, take

if TYPE_CHECKING:
    from holdfast.wire.message import Message

NAME = "openai-chat"
LISTS: tuple[Place, ...] = (("messages",),)
INLINE_SYSTEM = True

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

# Reasoning fields that compatible services return and expect back.
_REASONING = ("reasoning_content", "reasoning", "thinking")


def check(message: Any, place: Place) -> Role:
    role = role_of(message, _ROLES, place)
    content, calls = message.get("content"), message.get("tool_calls")
    if not (content is None or isinstance(content, (str, list))):
        raise wrong_type(content, (*place, "content"), "text, a list of parts or null")
    if not (calls is None or isinstance(calls, list)):
        raise wrong_type(calls, (*place, "tool_calls"), "a list")
    return role


def blocks(message: Any, owner: Message | None) -> tuple[Block, ...]:
    if message["role"] in ("tool", "function"):
        return (_result(message, owner),)
    inner = _content(message.get("content"), ("content",), owner)
    thoughts = [
        Thinking(text=take(message, name), place=(name,), owner=owner)
        for name in _REASONING
        if message.get(name)
    ]
    calls = [
        _call(c, ("tool_calls", i), owner) for i, c in enumerate(message.get("tool_calls") or ())
    ]
    if isinstance(message.get("function_call"), dict):
        calls.append(_legacy_call(message["function_call"], owner))
    return (*thoughts, *inner, *calls)


def _result(message: Any, owner: Message | None) -> ToolResult:
    content = message.get("content")
    inner = _content(content, ("content",), owner) if isinstance(content, list) else ()
    return ToolResult(
        # The legacy `function` role answers by name, so the name serves as the id.
        call_id=take(message, "tool_call_id") or take(message, "name"),
        name=take(message, "name"),
        text=content if isinstance(content, str) else join_text(inner),
        parts=inner,
        place=(),
        slot=("content",),
        owner=owner,
    )


def _call(call: Any, place: Place, owner: Message | None) -> Block:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        # A custom tool call, or an unknown type.
        custom = call.get("custom") if isinstance(call, dict) else None
        if isinstance(custom, dict):
            return ToolCall(
                id=take(call, "id"),
                name=take(custom, "name"),
                arguments=custom.get("input"),
                place=place,
                slot=(*place, "custom", "input"),
                owner=owner,
            )
        return Opaque(type="tool_call", place=place, owner=owner)
    return ToolCall(
        id=take(call, "id"),
        name=take(function, "name"),
        arguments=function.get("arguments"),
        place=place,
        slot=(*place, "function", "arguments"),
        owner=owner,
    )


def _legacy_call(call: dict[str, Any], owner: Message | None) -> ToolCall:
    return ToolCall(
        id=take(call, "name"),
        name=take(call, "name"),
        arguments=call.get("arguments"),
        place=("function_call",),
        slot=("function_call", "arguments"),
        owner=owner,
    )


def _content(content: Any, place: Place, owner: Message | None) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content, place=place, slot=place, owner=owner),)
    if isinstance(content, list):
        return tuple(_part(part, (*place, i), owner) for i, part in enumerate(content))
    return ()


_MEDIA = {
    "image_url": "image",
    "input_audio": "audio",
    "video_url": "video",
    "file": "document",
    "document_url": "document",
    "file_url": "document",
}


def _part(part: Any, place: Place, owner: Message | None) -> Block:
    if isinstance(part, str):  # some compatible services accept bare strings
        return Text(text=part, place=place, slot=place, owner=owner)
    kind = part.get("type") if isinstance(part, dict) else None
    match kind:
        case "text" if isinstance(part.get("text"), str):
            return Text(text=part["text"], place=place, slot=(*place, "text"), owner=owner)
        case "refusal" if isinstance(part.get("refusal"), str):
            return Text(text=part["refusal"], place=place, slot=(*place, "refusal"), owner=owner)
        case "thinking":
            inside = part.get("thinking")  # text, or Mistral's list of text parts
            texts = _content(inside, place, owner) if isinstance(inside, (str, list)) else ()
            return Thinking(text=join_text(texts), place=place, owner=owner)
        case str() if kind in _MEDIA:
            return Media(kind=_MEDIA[kind], place=place, slot=place, owner=owner)  # type: ignore[arg-type]
        case _:
            return Opaque(type=str(kind), place=place, owner=owner)


def system(body: Any) -> tuple[Block, ...]:
    return ()  # system messages are in the list


def tools(body: Any) -> tuple[Tool, ...]:
    offered = body.get("tools")
    tool_list = []
    for i, tool in enumerate(offered if isinstance(offered, list) else ()):
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict):
            tool_list.append(_tool(function, ("tools", i)))
        elif isinstance(tool, dict):
            name = take(tool, "custom", "name") or str(tool.get("type", ""))
            tool_list.append(Tool(name=name, place=("tools", i), hosted="custom" not in tool))
    legacy = body.get("functions")
    for i, function in enumerate(legacy if isinstance(legacy, list) else ()):
        if isinstance(function, dict):
            tool_list.append(_tool(function, ("functions", i)))
    return tuple(tool_list)


def _tool(function: dict[str, Any], place: Place) -> Tool:
    return Tool(
        name=take(function, "name"),
        description=take(function, "description"),
        parameters=function.get("parameters"),
        place=place,
    )


def content(block: Block, text: str) -> Any:
    if isinstance(block, ToolCall):
        if block.slot[-1] == "arguments":
            parse_arguments(text)  # arguments remain JSON text, but must be an object
        return text
    part = {"type": "text", "text": text}
    if isinstance(block, Media):
        return part
    return [part] if isinstance(block, ToolResult) and block.parts else text


def compose(entries: Sequence[Entry]) -> list[Any]:
    messages: list[Any] = []
    for entry in entries:
        texts = [block.text for block in entry.blocks if isinstance(block, Text)]
        calls = [_compose_call(b) for b in entry.blocks if isinstance(b, ToolCall)]
        if entry.role == "tool":
            messages.extend(
                {"role": "tool", "tool_call_id": block.call_id, "content": block.text}
                for block in entry.blocks
                if isinstance(block, ToolResult)
            )
        elif calls:
            text = "\n\n".join(texts) or None
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        elif any(isinstance(block, CarriedMedia) for block in entry.blocks):
            messages.append({"role": entry.role, "content": _compose_parts(entry.blocks)})
        else:
            messages.append({"role": entry.role, "content": "\n\n".join(texts)})
    return messages


def _compose_parts(blocks: Sequence[Block]) -> list[Any]:
    parts = [
        {"type": "text", "text": block.text}
        if isinstance(block, Text)
        else write_media(block, NAME)
        for block in blocks
        if isinstance(block, (Text, CarriedMedia))
    ]
    return [part for part in parts if part is not None]


def _compose_call(call: ToolCall) -> dict[str, Any]:
    arguments = json_text({} if call.arguments is None else call.arguments)
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


_PLAIN = ("model", "temperature", "top_p", "stop", "stream")


def params(body: Any) -> dict[str, Any]:
    common_params = {name: body[name] for name in _PLAIN if name in body}
    for name in ("max_completion_tokens", "max_tokens"):
        if name in body:
            common_params["max_tokens"] = body[name]
    choice = body.get("tool_choice", body.get("function_call"))
    if choice is not None:
        named = take(choice, "function", "name") or take(choice, "name")
        common_params["tool_choice"] = {"name": named} if named else choice
    return common_params


def envelope(system: str, tools: Sequence[Tool], params: dict[str, Any]) -> dict[str, Any]:
    body = {name: params.pop(name) for name in _PLAIN if name in params}
    if "max_tokens" in params:
        body["max_completion_tokens"] = params.pop("max_tokens")
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters or {"type": "object", "properties": {}},
                },
            }
            for tool in tools
        ]
        choice = params.pop("tool_choice", None)
        if isinstance(choice, dict):
            body["tool_choice"] = {"type": "function", "function": choice}
        elif choice:
            body["tool_choice"] = choice
    return body
