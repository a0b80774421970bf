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
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import encode, fields, items
from holdfast.wire.tools import claude_since, relisted

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
    known = conversation.dialect == "anthropic" and claude_since(model, _FIRST)
    return known and len(conversation.tools) <= _MOST_TOOLS


def held_back(conversation: Conversation) -> frozenset[str]:
    """Return the names of the deferred tools."""
    frame, mark = conversation.frame, _MARK.encode()
    if conversation.dialect != "anthropic" or (mark not in frame.head and mark not in frame.tail):
        return frozenset()
    listed = conversation.rest.get("tools")
    return frozenset(
        tool.name for tool in conversation.tools if listed[tool.place[-1]].get(_MARK) is True
    )


def hold_back(conversation: Conversation, tools: Collection[Tool]) -> Conversation:
    """Return the request with some tools deferred; others keep their bytes, and all their order.

    Cache breakpoints are removed from deferred tools: the API rejects them there, because these
    tools are not part of the prompt.
    """
    places = {tool.place[-1] for tool in tools}

    def marked(listed: bytes) -> bytes:
        entries = enumerate(items(listed))
        return encode([_marked(entry) if n in places else entry for n, entry in entries])

    return relisted(conversation, marked)


def _marked(entry: msgspec.Raw) -> dict[str, Any]:
    members: dict[str, Any] = fields(entry)
    members.pop("cache_control", None)
    return {**members, _MARK: True}


def loaded(conversation: Conversation) -> frozenset[str]:
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
    new = (name for m in messages if m.holds(mark) for name in _referred(m.parsed["content"]))
    return names.union(new)


def _referred(content: Any) -> list[str]:
    """Return the names of all tools that a content references, in results and additions."""
    names: list[str] = []
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict) and value.get("type") == _REFERENCE:
            names.append(str(value.get("tool_name") or value.get("name")))
        elif isinstance(value, dict):
            waiting.extend(value.get(key) for key in ("content", "tool_references", "tool"))
    return names


_LOADED: RunningNote[frozenset[str]] = RunningNote("loaded tools", frozenset(), _with_loaded)
