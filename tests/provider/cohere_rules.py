"""What Cohere's v2 chat refuses, written by hand from its API reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_FIELDS = {
    *("model", "messages", "stream", "tools", "strict_tools", "documents", "citation_options"),
    *("response_format", "safety_mode", "max_tokens", "stop_sequences", "temperature", "seed"),
    *("frequency_penalty", "presence_penalty", "k", "p", "logprobs", "tool_choice", "thinking"),
    "priority",
}
_ROLES = ("user", "assistant", "system", "tool")


def violations(value: dict[str, Any]) -> Iterator[str]:
    if unknown := value.keys() - _FIELDS:
        yield f"invalid request: unknown field: parameter(s) {sorted(unknown)}"
    messages = value["messages"]
    if not messages:
        yield "invalid request: at least one message must be provided"
    waiting: set[str] = set()
    for number, message in enumerate([*messages, {"role": "user", "content": "end"}]):
        role, calls = message.get("role"), message.get("tool_calls")
        if role not in _ROLES:
            yield f"invalid request: invalid role at messages[{number}]: {role}"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"invalid request: tool call id at messages[{number}] not found in previous"
            waiting.discard(str(message.get("tool_call_id")))
            continue
        if waiting:
            yield f"invalid request: no tool message for tool calls {sorted(waiting)}"
        waiting = {call["id"] for call in calls or ()}
        if not calls and not message.get("content"):
            yield f"invalid request: all elements in messages must have content: {number}"
        for call in calls or ():
            if call.get("type") != "function" or not isinstance(
                call["function"].get("arguments"), str
            ):
                yield f"invalid request: messages[{number}].tool_calls"
    for tool in value.get("tools") or ():
        if tool.get("type") != "function" or not tool.get("function", {}).get("name"):
            yield "invalid request: tools: name is required"
