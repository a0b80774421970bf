"""Tools that Anthropic keeps out of the prompt until a result references them.

A tool marked `defer_loading` enters the prompt when a result references it, and the model then
calls it by its own name. All definitions stay in the request, so the cached prefix stays valid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.wire import anthropic
from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.strict import encode, fields, items
from holdfast.wire.tools import claude_since, with_tool_list

_MARK = "defer_loading"
_REFERENCE = "tool_reference"
_FIRST = {
    "opus": (4, 5),
    "sonnet": (4, 5),
    "haiku": (4, 5),
    "fable": (5, 0),
    "mythos": (5, 0),
}
"""First model of each family that loads tools (platform.claude.com,
agents-and-tools/tool-use/tool-search-tool).
"""
_MOST_TOOLS = 9_990
"""Maximum tools of a request with deferred tools: the same page states 10,000, less those that
Holdfast adds.
"""


def loads_tools(conversation: Conversation, model: str) -> bool:
    """Return whether the request's tools can be deferred: an Anthropic model that supports it."""
    is_supported = conversation.dialect == "anthropic" and claude_since(model, _FIRST)
    return is_supported and len(conversation.tools) <= _MOST_TOOLS


def deferred_names(conversation: Conversation) -> frozenset[str]:
    """Return the names of the deferred tools."""
    frame, mark = conversation.frame, _MARK.encode()
    if conversation.dialect != "anthropic" or (mark not in frame.head and mark not in frame.tail):
        return frozenset()
    definitions = conversation.rest.get("tools")
    return frozenset(
        tool.name for tool in conversation.tools if definitions[tool.place[-1]].get(_MARK) is True
    )


def defer_tools(conversation: Conversation, tools: Collection[Tool]) -> Conversation:
    """Return the request with some tools deferred; others keep their bytes, and all their order.

    Cache breakpoints are removed from deferred tools: the API rejects them there, because these
    tools are not part of the prompt.
    """
    places = {tool.place[-1] for tool in tools}

    def marked(listed: bytes) -> bytes:
        entries = enumerate(items(listed))
        return encode([_mark_deferred(entry) if n in places else entry for n, entry in entries])

    return with_tool_list(conversation, marked)


def _mark_deferred(entry: msgspec.Raw) -> dict[str, Any]:
    members: dict[str, Any] = fields(entry)
    members.pop("cache_control", None)
    return {**members, _MARK: True}


def loaded_names(conversation: Conversation) -> frozenset[str]:
    """Return the names of the tools that messages have loaded."""
    return _LOADED.over(conversation)


def with_references(message: Message, names: Mapping[str, Sequence[str]]) -> Message:
    """Return a message in which some results, by call id, load tools instead of containing text."""
    value = message.value
    content = [
        {**part, "content": [{"type": _REFERENCE, "tool_name": name} for name in chosen]}
        if part.get("type") == "tool_result" and (chosen := names.get(part.get("tool_use_id")))
        else part
        for part in value["content"]
    ]
    return Message(encode({**value, "content": content}), message.role, anthropic)


def _with_loaded(names: frozenset[str], messages: Sequence[Message]) -> frozenset[str]:
    mark = _REFERENCE.encode()
    new = (
        name for m in messages if m.holds(mark) for name in _referenced_names(m.parsed["content"])
    )
    return names.union(new)


def _referenced_names(content: Any) -> list[str]:
    """Return the names of all tools that a content references, in results and additions."""
    names: list[str] = []
    pending = [content]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, dict) and value.get("type") == _REFERENCE:
            names.append(str(value.get("tool_name") or value.get("name")))
        elif isinstance(value, dict):
            pending.extend(value.get(key) for key in ("content", "tool_references", "tool"))
    return names


_LOADED: PrefixNote[frozenset[str]] = PrefixNote("loaded tools", frozenset(), _with_loaded)
