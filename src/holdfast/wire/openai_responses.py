"""OpenAI Responses: a flat list of items, in which messages and calls are separate items."""

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

NAME = "openai-responses"
LISTS: tuple[Place, ...] = (("input",),)
INLINE_SYSTEM = False

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_TEXT_PARTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_MEDIA_PARTS = {"input_image": "image", "input_audio": "audio", "input_file": "document"}

# Calls that the client runs, with the type of the item that answers each.
ANSWERED_BY = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
_ANSWERS = frozenset(ANSWERED_BY.values())

# Paired items that are never edited: the id field of the first item, and the field by which the
# second refers to it. A search that the provider runs has no call_id.
_PAIRS = {
    "tool_search_call": ("call_id", ""),
    "tool_search_output": ("", "call_id"),
    "program": ("call_id", ""),
    "program_output": ("", "call_id"),
    "mcp_approval_request": ("id", ""),
    "mcp_approval_response": ("", "approval_request_id"),
}
# Items that the client adds for the model, or sends as commands to the provider.
_CLIENTS: dict[str, Role] = {
    "additional_tools": "system",
    "compaction_trigger": "system",
    "mcp_approval_response": "tool",
}


def check(message: Any, place: Place) -> Role:
    if isinstance(message, str) and place == LISTS[0]:
        return "user"  # `"input": "text"` is one user message
    kind = message.get("type", "message") if isinstance(message, dict) else "message"
    if not isinstance(kind, str):
        raise wrong_type(kind, (*place, "type"), "text")
    if kind != "message":
        return "tool" if kind in _ANSWERS else _CLIENTS.get(kind, "assistant")
    role = role_of(message, _ROLES, place)
    if not isinstance(message.get("content"), (str, list)):
        raise wrong_type(message.get("content"), (*place, "content"), "text or a list of parts")
    return role


def blocks(message: Any, owner: Message | None) -> tuple[Block, ...]:
    if isinstance(message, str):
        return (Text(text=message, owner=owner),)
    kind = message.get("type", "message")
    if kind == "message":
        return _content(message["content"], ("content",), owner)
    if kind in ANSWERED_BY:
        slot = "input" if kind == "custom_tool_call" else "arguments"
        call = ToolCall(
            id=take(message, "call_id"),
            name=take(message, "name") or kind,
            arguments=message.get(slot),
            slot=(slot,) if kind in ("function_call", "custom_tool_call") else (),
            owner=owner,
        )
        return (call,)
    if kind in _ANSWERS:
        output = message.get("output")
        inner = _content(output, ("output",), owner) if isinstance(output, (str, list)) else ()
        if kind == "computer_call_output":  # a screenshot, which text cannot replace
            shot = Media(kind="image", place=("output",), owner=owner)
            return (
                ToolResult(call_id=take(message, "call_id"), text="", parts=(shot,), owner=owner),
            )
        result = ToolResult(
            call_id=take(message, "call_id"),
            text=join_text(inner) if inner else json_text(output),
            parts=inner if isinstance(output, list) else (),
            slot=("output",),
            owner=owner,
        )
        return (result,)
    if kind == "reasoning":
        thoughts = [
            block
            for key in ("summary", "content")
            if isinstance(message.get(key), list)
            for block in _content(message[key], (key,), owner)
        ]
        return (Thinking(text=join_text(thoughts), owner=owner),)
    opens, closes = _PAIRS.get(kind, ("", ""))
    item = Opaque(type=kind, opens=take(message, opens), closes=take(message, closes), owner=owner)
    return (item,)


def _content(content: Any, place: Place, owner: Message | None) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content, place=place, slot=place, owner=owner),)
    return tuple(_part(part, (*place, i), owner) for i, part in enumerate(content))


def _part(part: Any, place: Place, owner: Message | None) -> Block:
    kind = take(part, "type")
    if kind in _TEXT_PARTS and isinstance(part.get("text"), str):
        return Text(text=part["text"], place=place, slot=(*place, "text"), owner=owner)
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return Text(text=part["refusal"], place=place, slot=(*place, "refusal"), owner=owner)
    if kind in _MEDIA_PARTS:
        media = _MEDIA_PARTS[kind]
        return Media(kind=media, place=place, slot=place, owner=owner)  # type: ignore[arg-type]
    return Opaque(type=kind, place=place, owner=owner)


def system(body: Any) -> tuple[Block, ...]:
    text = body.get("instructions")
    if not isinstance(text, str):
        return ()
    return (Text(text=text, place=("instructions",), slot=("instructions",)),)


def tools(body: Any) -> tuple[Tool, ...]:
    offered = body.get("tools")
    return tuple(
        Tool(
            name=take(tool, "name") or str(tool.get("type", "")),
            description=take(tool, "description"),
            parameters=tool.get("parameters"),
            place=("tools", i),
            hosted=tool.get("type") not in ("function", "custom"),
        )
        for i, tool in enumerate(offered if isinstance(offered, list) else ())
        if isinstance(tool, dict)
    )


def content(block: Block, text: str) -> Any:
    if isinstance(block, ToolCall) and block.slot == ("arguments",):
        parse_arguments(text)
    if isinstance(block, Media):
        return {"type": "input_text", "text": text}
    return text  # a tool's output may always be plain text


def compose(entries: Sequence[Entry]) -> list[Any]:
    items: list[Any] = []
    for entry in entries:
        message_blocks: list[Block] = []
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                items.extend(_message(entry.role, message_blocks))
                message_blocks = []
                arguments = json_text({} if block.arguments is None else block.arguments)
                call = {"type": "function_call", "call_id": block.id, "name": block.name}
                items.append({**call, "arguments": arguments})
            elif isinstance(block, ToolResult):
                output = {"type": "function_call_output", "call_id": block.call_id}
                items.append({**output, "output": _compose_parts(block.parts) or block.text})
            elif isinstance(block, (Text, CarriedMedia)):
                message_blocks.append(block)
        items.extend(_message(entry.role, message_blocks))
    return items


def _message(role: Role, message_blocks: list[Block]) -> list[Any]:
    if not message_blocks:
        return []
    if any(isinstance(block, CarriedMedia) for block in message_blocks):
        return [{"type": "message", "role": role, "content": _compose_parts(message_blocks)}]
    texts = [block.text for block in message_blocks if isinstance(block, Text)]
    return [{"type": "message", "role": role, "content": "\n\n".join(texts)}]


def _compose_parts(blocks: Sequence[Block]) -> list[Any]:
    parts = [
        {"type": "input_text", "text": block.text}
        if isinstance(block, Text)
        else write_media(block, NAME)
        for block in blocks
        if isinstance(block, (Text, CarriedMedia))
    ]
    return [part for part in parts if part is not None]


_PLAIN = ("model", "temperature", "top_p", "stream")


def params(body: Any) -> dict[str, Any]:
    common_params = {name: body[name] for name in _PLAIN if name in body}
    if "max_output_tokens" in body:
        common_params["max_tokens"] = body["max_output_tokens"]
    choice = body.get("tool_choice")
    if choice is not None:
        common_params["tool_choice"] = (
            {"name": take(choice, "name")} if take(choice, "name") else choice
        )
    return common_params


def envelope(system: str, tools: Sequence[Tool], params: dict[str, Any]) -> dict[str, Any]:
    body = {name: params.pop(name) for name in _PLAIN if name in params}
    if "max_tokens" in params:
        body["max_output_tokens"] = params.pop("max_tokens")
    if system:
        body["instructions"] = system
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or {"type": "object", "properties": {}},
                "strict": False,  # the API's default, True, requires schemas of a special form
            }
            for tool in tools
        ]
        choice = params.pop("tool_choice", None)
        if isinstance(choice, dict):
            body["tool_choice"] = {"type": "function", **choice}
        elif choice:
            body["tool_choice"] = choice
    return body
