"""Tools whose schemas a provider holds back until they are found, and what has it load them.

loading: after tools. Anthropic's own way: a tool that is marked `defer_loading` is no part of the
prompt until a result refers to it, and from there on the model calls it by its own name. So all
definitions stay in the request, in front of everything, and what is cached stays as it was.
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
"""The first model of each family that loads tools; from platform.claude.com,
agents-and-tools/tool-use/tool-search-tool."""
_MOST_TOOLS = 9_990
"""Of a request whose tools can be held back: the same page says 10,000, with what we add."""


def loads_tools(conversation: Conversation, model: str) -> bool:
    """Whether a request can have its tools held back: a model of Anthropic's, and it knows how."""
    known = conversation.dialect == "anthropic" and claude_since(model, _FIRST)
    return known and len(conversation.tools) <= _MOST_TOOLS


def held_back(conversation: Conversation) -> frozenset[str]:
    """The names of the tools that are marked to be loaded later."""
    frame, mark = conversation.frame, _MARK.encode()
    if conversation.dialect != "anthropic" or (mark not in frame.head and mark not in frame.tail):
        return frozenset()
    listed = conversation.rest.get("tools")
    return frozenset(
        tool.name for tool in conversation.tools if listed[tool.place[-1]].get(_MARK) is True
    )


def hold_back(conversation: Conversation, tools: Collection[Tool]) -> Conversation:
    """The request with some tools marked; the others keep their very bytes, and all their order.

    What marks the end of a cached part cannot stand on them: the API refuses it, for they are no
    part of the prompt.
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
    """The names of the tools that messages have had loaded."""
    return _LOADED.over(conversation)


def with_references(message: Message, names: Mapping[str, Sequence[str]]) -> Message:
    """A message in which some results, by the ids of their calls, load tools instead of telling."""
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
    """Every tool that a content refers to, in results and where one is added."""
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
