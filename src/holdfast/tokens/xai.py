"""Convert xAI's own requests (gRPC as JSON) to Chat Completions requests for counting.

Values without an equivalent stay unchanged and are counted like unknown values of other dialects.
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


def is_xai_request(body: Any) -> bool:
    """Return whether a body is in xAI's own format, judged by the roles."""
    messages = _items(body, "messages")
    return bool(messages) and any(take(message, "role") in _ROLES for message in messages)


def as_chat(body: Any) -> Any:
    """Return a body as a Chat Completions request; other values are returned unchanged."""
    if not isinstance(body, dict):
        return body
    chat = dict(body)
    if isinstance(body.get("messages"), list):
        chat["messages"] = [_message(message) for message in body["messages"]]
    if isinstance(body.get("tools"), list):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
    choice = inner(body, "tool_choice")
    if name := take(choice, "function_name"):
        chat["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif mode := _MODES.get(take(choice, "mode")):
        chat["tool_choice"] = mode
    if (schema := inner(body, "response_format").get("schema")) is not None:
        chat["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return chat


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    chat = dict(message)
    role = take(message, "role")
    chat["role"] = _ROLES.get(role, role)
    if isinstance(message.get("content"), list):
        chat["content"] = [_part(part) for part in message["content"]]
    elif "content" not in message:
        chat["content"] = ""
    if calls := _items(message, "tool_calls"):
        chat["tool_calls"] = [_call(call) for call in calls]
    if chat["role"] == "tool":
        chat.setdefault("tool_call_id", "")
    return chat


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
    """Return a tool's function with its parameters decoded; xAI sends them as a JSON string."""
    return {**function, "parameters": as_json(function.get("parameters"))}


def _items(value: Any, key: str) -> list[Any]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []
