"""What OpenAI's Chat Completions refuses, in its words: rules C1 to C7, written from the list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.provider.shared import bad_name, empty_array, long_array, long_string, strings

_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_OPENAI = ("gpt-", "o1", "o3", "o4", "chatgpt", "codex")
_ORPHAN = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
    "with 'tool_calls'."
)


def violations(value: dict[str, Any], model: str) -> Iterator[str]:
    messages = value["messages"]
    if not messages:
        yield empty_array("messages")
    for number, message in enumerate(messages):
        yield from _message(message, f"messages[{number}]")
    yield from _exchanges(messages)
    if model.startswith(_OPENAI):
        yield from _ids(messages)
    else:
        yield from _compatible(messages)
    tools = value.get("tools")
    if tools == []:
        yield empty_array("tools")
    yield from long_array("tools", 128, len(tools or ()))
    for number, tool in enumerate(tools or ()):
        if tool.get("type") == "function":
            yield from bad_name(f"tools[{number}].function.name", tool["function"].get("name"))
    for path, text in strings(messages, "messages"):
        yield from long_string(path, text)


def _message(message: dict[str, Any], path: str) -> Iterator[str]:
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in _ROLES:
        supported = ", ".join(f"'{known}'" for known in _ROLES[:-1])
        yield f"Invalid value: '{role}'. Supported values are: {supported}, and 'developer'."
    if calls is not None and role != "assistant":
        yield f"Unrecognized request argument supplied: {path}.tool_calls"
    if calls == []:
        yield empty_array(f"{path}.tool_calls")
    if content is None and not calls and not message.get("function_call"):
        yield f"Invalid value for 'content': expected a string, got null. ({path})"
    if content == []:
        yield empty_array(f"{path}.content")
    yield from long_array(f"{path}.tool_calls", 128, len(calls or ()))
    for number, call in enumerate(calls or ()):
        at = f"{path}.tool_calls[{number}]"
        if "type" not in call:
            yield f"Missing required parameter: '{at}.type'."
        if call.get("type") == "function":
            yield from bad_name(f"{at}.function.name", call["function"].get("name"))
            if not isinstance(call["function"].get("arguments"), str):
                yield f"Invalid type for '{at}.function.arguments': expected a string."


def _exchanges(messages: list[Any]) -> Iterator[str]:
    """Yield violations of C1 and C2: results directly follow their calls, in any order, with
    nothing between.
    """
    waiting: set[str] = set()
    answered: set[str] = set()
    for message in [*messages, {"role": "user"}]:
        if message.get("role") == "tool":
            name = message.get("tool_call_id")
            if name in waiting:
                waiting.discard(name)
                answered.add(name)
            elif name in answered:
                yield f"Duplicate value for 'tool_call_id' of '{name}' in messages."
            else:
                yield _ORPHAN
            continue
        if waiting:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {', '.join(sorted(waiting))}"
            )
        waiting = {call.get("id") for call in message.get("tool_calls") or ()}
        answered = set()
        if len(waiting) < len(message.get("tool_calls") or ()):
            yield "Duplicate value for 'tool_call_id' in messages."


def _ids(messages: list[Any]) -> Iterator[str]:
    for number, message in enumerate(messages):
        for place, call in enumerate(message.get("tool_calls") or ()):
            path = f"messages[{number}].tool_calls[{place}].id"
            yield from long_string(path, str(call.get("id")), 40)


def _compatible(messages: list[Any]) -> Iterator[str]:
    """C7: what servers that imitate OpenAI's take for granted."""
    order: list[str] = []
    for number, message in enumerate(messages):
        if message.get("role") != "tool":
            order = [call.get("id") for call in message.get("tool_calls") or ()]
            continue
        if not isinstance(message.get("content"), str):
            yield f"messages[{number}].content: Input should be a valid string"
        if order and message.get("tool_call_id") != order.pop(0):
            yield f"messages[{number}]: tool results must come in the order of their calls"
