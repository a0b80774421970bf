"""Gemini generateContent: contents with parts; keys in camelCase or snake_case."""

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
from holdfast.wire.values import as_json, first, inner, json_text, parse_arguments, take

if TYPE_CHECKING:
    from holdfast.wire.message import Message

NAME = "gemini"
# countTokens may wrap the request.
LISTS: tuple[Place, ...] = (("contents",), ("generateContentRequest", "contents"))
INLINE_SYSTEM = False

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "tool"}
SIGNATURES = ("thoughtSignature", "thought_signature")
_CALLS = ("functionCall", "function_call")
_RESPONSES = ("functionResponse", "function_response")
_DATA = ("inlineData", "inline_data", "fileData", "file_data")


def check(message: Any, place: Place) -> Role:
    # A single turn may omit the role, and `parts` may be one part instead of a list.
    unspoken = isinstance(message, dict) and "role" not in message
    role = "user" if unspoken else role_of(message, _ROLES, place)
    if not isinstance(message.get("parts"), (list, dict)):
        raise wrong_type(message.get("parts"), (*place, "parts"), "a list of parts")
    return role


def blocks(message: Any, owner: Message | None) -> tuple[Block, ...]:
    return _parts(message["parts"], ("parts",), owner)


def _parts(parts: Any, place: Place, owner: Message | None) -> tuple[Block, ...]:
    if isinstance(parts, dict):
        return (_part(parts, place, owner),)
    return tuple(_part(part, (*place, i), owner) for i, part in enumerate(parts))


def _part(part: Any, place: Place, owner: Message | None) -> Block:
    if not isinstance(part, dict):
        return Opaque(type="part", place=place, owner=owner)
    if isinstance(part.get("text"), str):
        if part.get("thought") is True:
            return Thinking(text=part["text"], place=place, owner=owner)
        return Text(text=part["text"], place=place, slot=(*place, "text"), owner=owner)
    for key in _CALLS:
        if isinstance(call := part.get(key), dict):
            return ToolCall(
                id=take(call, "id"),
                name=take(call, "name"),
                arguments=call.get("args"),
                place=place,
                slot=(*place, key, "args"),
                owner=owner,
            )
    for key in _RESPONSES:
        if isinstance(answer := part.get(key), dict):
            return _result(answer, place, (*place, key, "response"), owner)
    for key in _DATA:
        if isinstance(data := part.get(key), dict):
            media_type = take(data, "mimeType") or take(data, "mime_type")
            return Media(
                kind=_kind(media_type), media_type=media_type, place=place, slot=place, owner=owner
            )
    return Opaque(type=next(iter(part), "part"), place=place, owner=owner)


def _result(answer: Any, place: Place, slot: Place, owner: Message | None) -> ToolResult:
    response = answer.get("response")
    is_error = isinstance(response, dict) and "error" in response
    # A response is an object; most clients wrap plain text in an object with one key.
    if isinstance(response, dict) and len(response) == 1:
        [(key, value)] = response.items()
        if isinstance(value, str):
            response, slot = value, (*slot, key)
    return ToolResult(
        call_id=take(answer, "id"),
        name=take(answer, "name"),
        text=json_text(response),
        is_error=is_error,
        place=place,
        slot=slot,
        owner=owner,
    )


def _kind(media_type: str) -> Any:
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def _request(body: Any) -> tuple[dict[str, Any], Place]:
    wrapped = body.get("generateContentRequest")
    return (wrapped, ("generateContentRequest",)) if isinstance(wrapped, dict) else (body, ())


def system(body: Any) -> tuple[Block, ...]:
    request, at = _request(body)
    for key in ("systemInstruction", "system_instruction"):
        instruction = request.get(key)
        if isinstance(instruction, dict) and isinstance(instruction.get("parts"), (list, dict)):
            return _parts(instruction["parts"], (*at, key, "parts"), None)
    return ()


def tools(body: Any) -> tuple[Tool, ...]:
    request, at = _request(body)
    tool_list: list[Tool] = []
    for place, group in _objects_with_places(request.get("tools"), (*at, "tools")):
        for key, value in group.items():
            if key not in ("functionDeclarations", "function_declarations"):
                tool_list.append(Tool(name=key, place=(*place, key), hosted=True))
                continue
            tool_list.extend(
                Tool(
                    name=take(declared, "name"),
                    description=take(declared, "description"),
                    parameters=first(
                        declared, "parameters", "parametersJsonSchema", "parameters_json_schema"
                    ),
                    place=where,
                )
                for where, declared in _objects_with_places(value, (*place, key))
            )
    return tuple(tool_list)


def _objects_with_places(value: Any, place: Place) -> list[tuple[Place, dict[str, Any]]]:
    """Return the objects of a list with their positions; a lone object counts as a list of one."""
    if isinstance(value, dict):
        return [(place, value)]
    items = value if isinstance(value, list) else []
    return [((*place, i), item) for i, item in enumerate(items) if isinstance(item, dict)]


def content(block: Block, text: str) -> Any:
    if isinstance(block, ToolCall):
        return parse_arguments(text)
    if isinstance(block, ToolResult) and block.slot[-1] == "response":
        # The two keys that the API documents for free text.
        return {"error" if block.is_error else "output": text}
    return {"text": text} if isinstance(block, Media) else text


def compose(entries: Sequence[Entry]) -> list[Any]:
    contents: list[Any] = []
    for entry in entries:
        role = "model" if entry.role == "assistant" else "user"
        parts = [_compose_part(block) for block in entry.blocks]
        contents.append({"role": role, "parts": parts})
    return contents


def _compose_part(block: Block) -> dict[str, Any]:
    if isinstance(block, ToolCall):
        return {
            "functionCall": {"id": block.id, "name": block.name, "args": as_json(block.arguments)}
        }
    if isinstance(block, ToolResult):
        response = {"error" if block.is_error else "output": block.text}
        return {"functionResponse": {"id": block.call_id, "name": block.name, "response": response}}
    if isinstance(block, CarriedMedia) and (medium := write_media(block, NAME)):
        return medium
    assert isinstance(block, Text)
    return {"text": block.text}


_NAMES = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}


def params(body: Any) -> dict[str, Any]:
    request, _ = _request(body)
    config = first(request, "generationConfig", "generation_config")
    common_params = {
        common: config[native]
        for common, native in _NAMES.items()
        if isinstance(config, dict) and native in config
    }
    if "model" in request:
        common_params["model"] = request["model"]
    calling = inner(request, "toolConfig", "functionCallingConfig")
    if calling:
        allowed = calling.get("allowedFunctionNames")
        only = {"name": allowed[0]} if isinstance(allowed, list) and len(allowed) == 1 else None
        common_params["tool_choice"] = only or _MODES.get(str(calling.get("mode")).upper())
    return common_params


def envelope(system: str, tools: Sequence[Tool], params: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    params.pop("model", None)  # in the URL
    params.pop("stream", None)  # in the URL
    if isinstance(params.get("stop"), str):
        params["stop"] = [params["stop"]]
    config = {native: params.pop(name) for name, native in _NAMES.items() if name in params}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if tools:
        declared = [
            {
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": tool.parameters,
            }
            if tool.parameters
            else {"name": tool.name, "description": tool.description}
            for tool in tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
        choice = params.pop("tool_choice", None)
        if isinstance(choice, dict):
            calling = {"mode": "ANY", "allowedFunctionNames": [choice["name"]]}
            body["toolConfig"] = {"functionCallingConfig": calling}
        elif choice:
            mode = next(native for native, common in _MODES.items() if common == choice)
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
    if config:
        body["generationConfig"] = config
    return body
