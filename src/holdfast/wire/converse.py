"""Bedrock Converse: every part is an object with one key that names its kind."""

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
from holdfast.wire.dialect import Entry, by_turns, role_of, wrong_type
from holdfast.wire.json_places import Place
from holdfast.wire.values import as_json, inner, json_text, parse_arguments, take

if TYPE_CHECKING:
    from holdfast.wire.message import Message

NAME = "converse"
# CountTokens wraps the request.
LISTS: tuple[Place, ...] = (("messages",), ("input", "converse", "messages"))
INLINE_SYSTEM = False

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_MEDIA = ("image", "document", "video", "audio")


def check(message: Any, place: Place) -> Role:
    role = role_of(message, _ROLES, place)
    if not isinstance(message.get("content"), list):
        raise wrong_type(message.get("content"), (*place, "content"), "a list of parts")
    return role


def blocks(message: Any, owner: Message | None) -> tuple[Block, ...]:
    return _content(message["content"], ("content",), owner)


def _content(content: list[Any], place: Place, owner: Message | None) -> tuple[Block, ...]:
    return tuple(_part(part, (*place, i), owner) for i, part in enumerate(content))


def _part(part: Any, place: Place, owner: Message | None) -> Block:
    if not isinstance(part, dict):
        return Opaque(type="part", place=place, owner=owner)
    if isinstance(part.get("text"), str):
        return Text(text=part["text"], place=place, slot=(*place, "text"), owner=owner)
    if isinstance(call := part.get("toolUse"), dict):
        return ToolCall(
            id=take(call, "toolUseId"),
            name=take(call, "name"),
            arguments=call.get("input"),
            place=place,
            slot=(*place, "toolUse", "input"),
            owner=owner,
        )
    if isinstance(result := part.get("toolResult"), dict):
        slot = (*place, "toolResult", "content")
        content = result.get("content")
        inner = _content(content, slot, owner) if isinstance(content, list) else ()
        return ToolResult(
            call_id=take(result, "toolUseId"),
            text=_result_text(content),
            is_error=result.get("status") == "error",
            parts=inner,
            place=place,
            slot=slot,
            owner=owner,
        )
    if isinstance(part.get("reasoningContent"), dict):
        text = take(part, "reasoningContent", "reasoningText", "text")
        return Thinking(text=text, place=place, owner=owner)
    for kind in _MEDIA:
        if isinstance(data := part.get(kind), dict):
            media_type = take(data, "format")
            return Media(kind=kind, media_type=media_type, place=place, slot=place, owner=owner)  # type: ignore[arg-type]
    return Opaque(type=next(iter(part), "part"), place=place, owner=owner)


def _result_text(content: Any) -> str:
    parts = content if isinstance(content, list) else ()
    texts = (_part_text(part) for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if text)


def _part_text(part: dict[str, Any]) -> str:
    if "json" in part:
        return json_text(part["json"])
    search_result = part.get("searchResult")
    if isinstance(search_result, dict):
        inside = search_result.get("content")
        texts = [take(text, "text") for text in inside] if isinstance(inside, list) else []
        return "\n".join([take(search_result, "title"), take(search_result, "source"), *texts])
    return take(part, "text")


def request(body: Any) -> tuple[dict[str, Any], Place]:
    """Return the request and its position in the body; CountTokens wraps it."""
    wrapped = inner(body, "input", "converse") if "messages" not in body else {}
    return (wrapped, ("input", "converse")) if wrapped else (body, ())


def system(body: Any) -> tuple[Block, ...]:
    request_body, at = request(body)
    parts = request_body.get("system")
    return _content(parts, (*at, "system"), None) if isinstance(parts, list) else ()


def tools(body: Any) -> tuple[Tool, ...]:
    inside, at = request(body)
    config = inside.get("toolConfig")
    offered = config.get("tools") if isinstance(config, dict) else None
    tool_list = []
    for i, tool in enumerate(offered if isinstance(offered, list) else ()):
        spec = tool.get("toolSpec") if isinstance(tool, dict) else None
        if isinstance(spec, dict):
            schema = spec.get("inputSchema")
            tool_list.append(
                Tool(
                    name=take(spec, "name"),
                    description=take(spec, "description"),
                    parameters=schema.get("json") if isinstance(schema, dict) else None,
                    place=(*at, "toolConfig", "tools", i),
                )
            )
    return tuple(tool_list)


def content(block: Block, text: str) -> Any:
    if isinstance(block, ToolCall):
        return parse_arguments(text)
    if isinstance(block, ToolResult):
        return [{"text": text}]
    return {"text": text} if isinstance(block, Media) else text


def compose(entries: Sequence[Entry]) -> list[Any]:
    return by_turns(entries, _compose_part)


def _compose_part(block: Block) -> dict[str, Any]:
    if isinstance(block, ToolCall):
        call = {"toolUseId": block.id, "name": block.name, "input": as_json(block.arguments)}
        return {"toolUse": call}
    if isinstance(block, ToolResult):
        result = {"toolUseId": block.call_id, "content": [{"text": block.text}]}
        return {"toolResult": {**result, "status": "error"} if block.is_error else result}
    assert isinstance(block, Text)
    return {"text": block.text}


_NAMES = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}


def params(body: Any) -> dict[str, Any]:
    request_body, _ = request(body)
    config = request_body.get("inferenceConfig")
    common_params = {
        common: config[native]
        for common, native in _NAMES.items()
        if isinstance(config, dict) and native in config
    }
    if "modelId" in body:
        common_params["model"] = body["modelId"]
    choice = inner(request_body, "toolConfig", "toolChoice")
    if choice:
        named = take(choice, "tool", "name")
        kind = "required" if "any" in choice else "auto"
        common_params["tool_choice"] = {"name": named} if named else kind
    return common_params


def envelope(system: str, tools: Sequence[Tool], params: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    params.pop("model", None)  # in the URL
    params.pop("stream", None)  # in the URL
    if isinstance(params.get("stop"), str):
        params["stop"] = [params["stop"]]
    config = {native: params.pop(name) for name, native in _NAMES.items() if name in params}
    if system:
        body["system"] = [{"text": system}]
    if tools:
        specs = [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description or tool.name,  # must not be empty
                    "inputSchema": {"json": tool.parameters or {"type": "object"}},
                }
            }
            for tool in tools
        ]
        body["toolConfig"] = {"tools": specs}
        choice = params.get("tool_choice")
        if isinstance(choice, dict):
            body["toolConfig"]["toolChoice"] = {"tool": params.pop("tool_choice")}
        elif choice in ("auto", "required"):
            params.pop("tool_choice")
            body["toolConfig"]["toolChoice"] = {"any" if choice == "required" else "auto": {}}
    if config:
        body["inferenceConfig"] = config
    return body
