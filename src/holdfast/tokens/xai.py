"""xAI's own requests (gRPC, as JSON), as the Chat Completions request that they mean.

xai: before reading. For counting only: what has no meaning there is left as it is, and counted as
the other dialects count what they do not know.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.values import as_json, inner, take

NAME = "xai"

_ROLES = {
    "ROLE_USER": "user",
    "ROLE_ASSISTANT": "assistant",
    "ROLE_SYSTEM": "system",
    "ROLE_DEVELOPER": "developer",
    "ROLE_FUNCTION": "tool",
    "ROLE_TOOL": "tool",
}
_MODES = {
    "TOOL_MODE_AUTO": "auto",
    "TOOL_MODE_NONE": "none",
    "TOOL_MODE_REQUIRED": "required",
}


def speaks(body: Any) -> bool:
    """Whether a body is one of xAI's own: told by the roles."""
    messages = _listed(body, "messages")
    return bool(messages) and any(take(message, "role") in _ROLES for message in messages)


def as_chat(body: Any) -> Any:
    """A body as a Chat Completions request; one that is none is given back as it came."""
    if not isinstance(body, dict):
        return body
    made = dict(body)
    if isinstance(body.get("messages"), list):
        made["messages"] = [_message(message) for message in body["messages"]]
    if isinstance(body.get("tools"), list):
        made["tools"] = [_tool(tool) for tool in body["tools"]]
    choice = inner(body, "tool_choice")
    if name := take(choice, "function_name"):
        made["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif mode := _MODES.get(take(choice, "mode")):
        made["tool_choice"] = mode
    if (schema := inner(body, "response_format").get("schema")) is not None:
        made["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return made


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    made = dict(message)
    role = take(message, "role")
    made["role"] = _ROLES.get(role, role)
    if isinstance(message.get("content"), list):
        made["content"] = [_part(part) for part in message["content"]]
    elif "content" not in message:
        made["content"] = ""
    if calls := _listed(message, "tool_calls"):
        made["tool_calls"] = [_call(call) for call in calls]
    if made["role"] == "tool":
        made.setdefault("tool_call_id", "")
    return made


def _part(part: Any) -> Any:
    if not isinstance(part, dict) or "type" in part:
        return part
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if image := inner(part, "image_url"):
        address = take(image, "image_url") or take(image, "url")
        return {"type": "image_url", "image_url": {"url": address}}
    if file := inner(part, "file"):
        return {"type": "file", "file": file}
    return {"type": next(iter(part), "text"), **part}


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    return {**call, "type": "function"} if inner(call, "function") else call


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or "type" in tool:
        return tool
    if function := inner(tool, "function"):
        return {"type": "function", "function": _function(function)}
    return {"type": next(iter(tool), "unknown"), **tool}


def _function(function: dict[str, Any]) -> dict[str, Any]:
    """A tool's function; its parameters come as JSON in a text."""
    return {**function, "parameters": as_json(function.get("parameters"))}


def _listed(value: Any, key: str) -> list[Any]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []
