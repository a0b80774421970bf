"""Forbid tools for one request without changing their definitions.

Tools are the first part of the provider's cached prefix: removing one would invalidate all of it.
The allowed tools are stated beside the list instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.rules.common import openai_answers
from holdfast.wire.values import first, inner, take

IsForbidden = Callable[[str], bool]
"""Returns whether the tool with this name must not be called."""


def forbid_tools(conversation: Conversation, withdrawn: IsForbidden) -> Conversation:
    """Return the request with some tools forbidden."""
    allowed_tools = [tool for tool in conversation.tools if not withdrawn(tool.name)]
    match conversation.dialect:
        case "openai-chat":
            choice = _openai_choice(conversation, allowed_tools, _chat_name, nested=True)
        case "openai-responses":
            choice = _openai_choice(conversation, allowed_tools, _responses_name, nested=False)
        case "anthropic":
            # Anthropic can only forbid all tools or none. Forbidding all is better than a further
            # call: the turn would otherwise end without text.
            choice = {"type": "none"}
        case "gemini":
            return _gemini(conversation, allowed_tools, withdrawn)
        case _:
            return conversation
    return conversation if choice is None else conversation.with_field("tool_choice", choice)


def keeps_other_tools(conversation: Conversation, withdrawn: IsForbidden) -> bool:
    """Return whether `withdraw` leaves all other tools callable; true if there are none."""
    if all(withdrawn(tool.name) for tool in conversation.tools):
        return True
    match conversation.dialect:
        case "openai-chat" | "openai-responses":
            return openai_answers(conversation.context())
        case dialect:
            return dialect != "anthropic"


def chosen_tools(conversation: Conversation) -> set[str]:
    """Return the tool names in the request's tool choice."""
    body = conversation.rest
    config = first(body, "toolConfig", "tool_config")
    names: set[str] = set()
    pending = [body.get("tool_choice"), body.get("function_call"), config]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, str):  # an entry of a list of names, or a word such as `auto`
            names.add(value)
        elif isinstance(value, dict):
            pending.extend(member for key, member in value.items() if key != "type")
    return names


Named = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts a tool's definition to its form in a tool choice."""


def _openai_choice(
    conversation: Conversation, allowed_tools: Sequence[Tool], name: Named, *, nested: bool
) -> Any:
    """Return the tool choice that forbids the others; None if the request already forbids them."""
    current_choice = conversation.rest.get("tool_choice")
    if isinstance(current_choice, dict) and current_choice.get("type") != "allowed_tools":
        return None  # the client forces one tool
    # Only OpenAI accepts a list of allowed tools; compatible services reject it.
    if not allowed_tools or not openai_answers(conversation.context()):
        return "none"
    definitions = conversation.rest.get("tools")
    allowed = [
        name(definitions[tool.place[-1]]) for tool in allowed_tools if tool.place[0] == "tools"
    ]
    if isinstance(current_choice, dict):
        allowed_list = inner(current_choice, "allowed_tools") if nested else current_choice
        allowed = [tool for tool in allowed_list.get("tools") or () if tool in allowed]
    forced = current_choice == "required" or take(current_choice, "mode") == "required"
    forced = forced or take(current_choice, "allowed_tools", "mode") == "required"
    choice = {"mode": "required" if forced else "auto", "tools": allowed}
    if not allowed:
        return "none"
    if nested:
        return {"type": "allowed_tools", "allowed_tools": choice}
    return {"type": "allowed_tools", **choice}


def _chat_name(definition: dict[str, Any]) -> dict[str, Any]:
    kind = take(definition, "type") or "function"
    return {"type": kind, kind: {"name": take(definition, kind, "name")}}


def _responses_name(definition: dict[str, Any]) -> dict[str, Any]:
    keys = ("type", "name", "server_label")
    return {key: definition[key] for key in keys if isinstance(definition.get(key), str)}


def _gemini(
    conversation: Conversation, allowed_tools: Sequence[Tool], withdrawn: IsForbidden
) -> Conversation:
    body = conversation.rest
    key = "tool_config" if "tool_config" in body else "toolConfig"
    calling = first(inner(body, key), "functionCallingConfig", "function_calling_config")
    calling = calling if isinstance(calling, dict) else {}
    names = first(calling, "allowedFunctionNames", "allowed_function_names")
    own_names = [tool.name for tool in allowed_tools if not tool.hosted]
    allowed = (
        [n for n in names if not withdrawn(n)] if isinstance(names, list) and names else own_names
    )
    # The modes ANY, which forces a call, and VALIDATED, which also allows text, accept a list of
    # names; AUTO rejects it.
    mode = "ANY" if calling.get("mode") == "ANY" else "VALIDATED"
    choice = {"mode": mode, "allowedFunctionNames": allowed} if allowed else {"mode": "NONE"}
    spare = ("functionCallingConfig", "function_calling_config")
    config = {name: value for name, value in inner(body, key).items() if name not in spare}
    return conversation.with_field(key, {**config, "functionCallingConfig": choice})
