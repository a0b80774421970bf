"""Convert LangChain messages to Chat Completions messages and back.

A block unknown to the dialect is counted as its JSON. Unedited messages are never converted back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})
"""Blocks that repeat an entry of `tool_calls`."""


class Messages:
    """Converts LangChain messages to and from Chat Completions messages."""

    dialect = "openai-chat"

    def write(self, message: BaseMessage) -> Sequence[Mapping[str, Any]]:
        """Return a message in the dialect; unknown blocks are written as JSON."""
        role = _ROLES.get(message.type, "user")
        value: dict[str, Any] = {"role": role, "content": _content(message)}
        if isinstance(message, ToolMessage):
            value["tool_call_id"] = message.tool_call_id
        if isinstance(message, AIMessage):
            calls = [_call(c["id"], c["name"], json.dumps(c["args"])) for c in message.tool_calls]
            calls += [_call(c["id"], c["name"], c["args"]) for c in message.invalid_tool_calls]
            if calls:
                value["tool_calls"] = calls
                value["content"] = value["content"] or None
        return (value,)

    def read(self, parts: Sequence[tuple[Any, BaseMessage | None]]) -> Sequence[BaseMessage]:
        """Return a message with its edited content; a digest becomes a new message."""
        [(value, like)] = parts
        content = value.get("content") or ""
        if like is not None and _ROLES.get(like.type, "user") == value["role"]:
            return [like.model_copy(update={"content": content})]
        if value["role"] == "tool":
            return [ToolMessage(content=content, tool_call_id=value["tool_call_id"])]
        if value["role"] == "assistant":
            calls = [_read_call(call) for call in value.get("tool_calls") or ()]
            return [AIMessage(content=content, tool_calls=calls)]
        kind = SystemMessage if value["role"] in ("system", "developer") else HumanMessage
        return [kind(content=content)]


def _content(message: BaseMessage) -> Any:
    content = message.content
    if isinstance(content, str):
        return content
    return [_block(block) for block in content if not _is_call(block)]


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _CALLS


def _block(block: Any) -> Any:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if block.get("type") == "text":
        return {"type": "text", "text": block.get("text", "")}
    if block.get("type") == "image_url":
        return block
    return {"type": "text", "text": json.dumps(block, default=str)}


def _call(call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    function = {"name": name or "", "arguments": arguments or ""}
    return {"id": call_id or "", "type": "function", "function": function}


def _read_call(call: Any) -> dict[str, Any]:
    function = call["function"]
    return {"name": function["name"], "args": json.loads(function["arguments"]), "id": call["id"]}
