"""Anthropic Messages: content is text or a list of parts; user messages carry tool results."""

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
from holdfast.wire.media import CarriedMedia, write_media
from holdfast.wire.values import as_json, join_text, parse_arguments, take

if TYPE_CHECKING:
    from holdfast.wire.message import Message

NAME = "anthropic"
LISTS: tuple[Place, ...] = (("messages",),)
INLINE_SYSTEM = False

SERVER_USES = ("server_tool_use", "mcp_tool_use")
"""Calls of tools that the provider runs; a later block of the same message holds the result."""

# The newest models accept `system` messages inside the list, as mid-conversation instructions.
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def check(message: Any, place: Place) -> Role:
    role = role_of(message, _ROLES, place)
    if not isinstance(message.get("content"), (str, list)):
        raise wrong_type(message.get("content"), (*place, "content"), "text or a list of parts")
    return role


def blocks(message: Any, owner: Message | None) -> tuple[Block, ...]:
    return _content(message["content"], ("content",), owner)


def system(body: Any) -> tuple[Block, ...]:
    content = body.get("system")
    return _content(content, ("system",), None) if isinstance(content, (str, list)) else ()


def _content(content: str | list[Any], place: Place, owner: Message | None) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content, place=place, slot=place, owner=owner),)
    return tuple(_part(part, (*place, i), owner) for i, part in enumerate(content))


def _part(part: Any, place: Place, owner: Message | None) -> Block:
    kind = part.get("type", _kind_by_shape(part)) if isinstance(part, dict) else None
    match kind:
        case "text" if isinstance(part.get("text"), str):
            return Text(text=part["text"], place=place, slot=(*place, "text"), owner=owner)
        case "tool_use":
            return ToolCall(
                id=take(part, "id"),
                name=take(part, "name"),
                arguments=part.get("input"),
                place=place,
                slot=(*place, "input"),
                owner=owner,
            )
        case "tool_result":
            slot = (*place, "content")
            content = part.get("content", "")
            inner = _content(content, slot, owner) if isinstance(content, list) else ()
            return ToolResult(
                call_id=take(part, "tool_use_id"),
                text=content if isinstance(content, str) else join_text(inner),
                is_error=part.get("is_error") is True,
                parts=inner,
                place=place,
                slot=slot,
                owner=owner,
            )
        case "thinking" | "redacted_thinking":
            text = part.get("thinking")
            return Thinking(text=text if isinstance(text, str) else "", place=place, owner=owner)
        case "image" | "document":
            media_type = take(part, "source", "media_type")
            return Media(kind=kind, media_type=media_type, place=place, slot=place, owner=owner)
        case _:
            return Opaque(
                type=str(kind),
                opens=take(part, "id") if kind in SERVER_USES else "",
                closes=take(part, "tool_use_id"),
                place=place,
                owner=owner,
            )


def _kind_by_shape(part: dict[str, Any]) -> str | None:
    """Return the kind of a part without a type, inferred from its keys.

    The API rejects the part and names the error. As an unknown block, its counterpart would be
    removed as an orphan first, and the client would never see the real error.
    """
    if "tool_use_id" in part:
        return "tool_result"
    return "tool_use" if {"id", "name", "input"} <= part.keys() else None


def tools(body: Any) -> tuple[Tool, ...]:
    offered = body.get("tools")
    if not isinstance(offered, list):
        return ()
    return tuple(
        Tool(
            name=take(tool, "name"),
            description=take(tool, "description"),
            parameters=tool.get("input_schema"),
            place=("tools", i),
            # Client tools have no type or `custom`; the provider's own tools have dated types.
            hosted=tool.get("type", "custom") not in ("custom", None),
        )
        for i, tool in enumerate(offered)
        if isinstance(tool, dict)
    )


def content(block: Block, text: str) -> Any:
    if isinstance(block, ToolCall):
        return parse_arguments(text)
    if isinstance(block, Media) or (isinstance(block, ToolResult) and block.parts):
        part = {"type": "text", "text": text}
        return part if isinstance(block, Media) else [part]
    return text


def compose(entries: Sequence[Entry]) -> list[Any]:
    return by_turns(entries, _compose_part)


def _compose_part(block: Block) -> dict[str, Any]:
    if isinstance(block, ToolCall):
        arguments = as_json(block.arguments)
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}
    if isinstance(block, ToolResult):
        inside = [_compose_part(part) for part in block.parts]
        part: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id}
        part["content"] = inside or block.text
        return {**part, "is_error": True} if block.is_error else part
    if isinstance(block, CarriedMedia) and (medium := write_media(block, NAME)):
        return medium
    assert isinstance(block, Text)
    return {"type": "text", "text": block.text}


_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def params(body: Any) -> dict[str, Any]:
    names = ("model", "max_tokens", "temperature", "top_p", "stream")
    common = {name: body[name] for name in names if name in body}
    if "stop_sequences" in body:
        common["stop"] = body["stop_sequences"]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        kind = choice.get("type")
        common["tool_choice"] = (
            {"name": choice.get("name")} if kind == "tool" else _CHOICES.get(str(kind))
        )
    return common


def envelope(system: str, tools: Sequence[Tool], params: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        name: params.pop(name)
        for name in ("model", "max_tokens", "temperature", "top_p", "stream")
        if name in params
    }
    # Anthropic requires this parameter; the other dialects do not.
    body.setdefault("max_tokens", 4096)
    if "stop" in params:
        stop = params.pop("stop")
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if system:
        body["system"] = system
    if tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters or {"type": "object"},
            }
            for tool in tools
        ]
        choice = params.pop("tool_choice", None)
        if isinstance(choice, dict):
            body["tool_choice"] = {"type": "tool", **choice}
        elif choice:
            named = {common: native for native, common in _CHOICES.items()}
            body["tool_choice"] = {"type": named[choice]}
    return body
