"""Add or remove tools of a request, leaving all other bytes unchanged.

Tools are the first part of a provider's cached prefix. Two dialects also accept a tool in a
message, from which on it applies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.wire import anthropic, openai_responses
from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.dialect import Dialect
from holdfast.wire.frame import BodyFrame
from holdfast.wire.json_places import Place
from holdfast.wire.message import Message
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.strict import encode, fields, items, offsets, splice
from holdfast.wire.values import inner, take

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_TAKING: dict[str, Dialect] = {
    anthropic.NAME: anthropic,
    openai_responses.NAME: openai_responses,
}
"""Dialects in which a message can define tools."""
_ITEM = "additional_tools"
_BLOCK = "tool_addition"
INLINE_BETA = "inline-tools-2026-09-15"
"""Value of `anthropic-beta` that a request needs to define tools in a message."""
_CLAUDE = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d))?(?!\d)")
_CHANGES_TOOLS = {
    "opus": (4, 8),
    "sonnet": (5, 5),
    "haiku": (5, 5),
    "fable": (5, 0),
    "mythos": (5, 0),
}
"""First model of each family whose tools may change in mid-conversation (platform.claude.com,
build-with-claude/mid-conversation-system-messages).
"""


def with_tool(conversation: Conversation, definition: Mapping[str, Any]) -> Conversation:
    """Return the request with one more tool, in the dialect's own form, after the existing ones."""
    inside = conversation.frame.place[:-1]
    place: Place = (*inside, "tools")
    if conversation.dialect == "converse":
        place = (*inside, "toolConfig", "tools")
    offered = _find(conversation.rest, place)
    legacy = _find(conversation.rest, (*inside, "functions"))
    if conversation.dialect == "openai-chat" and legacy and not offered:
        place, offered, definition = (*inside, "functions"), legacy, definition["function"]
    frame = conversation.frame
    hollow = frame.hollow
    if not isinstance(offered, list):
        return conversation.with_frame(_put(frame, hollow, place, encode([definition])))
    start, stop = offsets(hollow, place)
    tool_list = _extended_list(hollow[start:stop], offered, definition)
    return conversation.with_frame(_replace(frame, start, stop, tool_list))


def plain_functions(conversation: Conversation) -> list[Tool]:
    """Return the tools of the body that consist of a name, a description and a schema.

    Hosted tools, tools in messages, legacy functions and tools with unknown members are excluded,
    because other parts of the request may depend on them.
    """
    known_members = _KNOWN.get(conversation.dialect, frozenset())
    list_depth = len(conversation.frame.place)
    plain = []
    for tool in conversation.tools:
        if not all(isinstance(step, int) for step in tool.place[list_depth::2]):
            continue  # a single object instead of a list
        value = _find(conversation.rest, tool.place)
        if conversation.dialect == "openai-chat" and isinstance(value, dict):
            function = value.get("function")
            value = function if value.keys() == {"type", "function"} else None
        is_plain_object = isinstance(value, dict) and not tool.hosted and bool(tool.name)
        if is_plain_object and value.keys() <= known_members and value.get("type") in _PLAIN_TYPES:
            plain.append(tool)
    times = Counter(tool.name for tool in plain)
    return [tool for tool in plain if times[tool.name] == 1]


def definitions(conversation: Conversation, tools: Sequence[Tool]) -> list[bytes]:
    """Return the definitions of tools in the body's list, unchanged."""
    inside = (*conversation.frame.place[:-1], "tools")
    start, stop = offsets(conversation.frame.hollow, inside)
    entries = items(conversation.frame.hollow[start:stop])
    groups: dict[Any, list[msgspec.Raw]] = {}
    written = []
    for tool in tools:
        steps: tuple[Any, ...] = tool.place[len(inside) :]
        n, *remaining = steps
        if not remaining:
            written.append(bytes(entries[n]))
            continue
        key = (n, remaining[0])
        if key not in groups:  # Gemini's groups, parsed once instead of once per function
            groups[key] = items(fields(entries[n])[remaining[0]])
        written.append(bytes(groups[key][remaining[1]]))
    return written


def without_tools(conversation: Conversation, tools: Collection[Tool]) -> Conversation:
    """Return the request without some tools; the others keep their bytes and order."""
    removed_places = {tool.place for tool in tools}
    place: Place = (*conversation.frame.place[:-1], "tools")
    return with_tool_list(conversation, lambda listed: _remaining(listed, place, removed_places))


def without_fields(conversation: Conversation, names: Collection[str]) -> Conversation:
    """Return the request without some fields beside its messages."""
    inside = conversation.frame.place[:-1]
    hollow = conversation.frame.hollow
    start, stop = offsets(hollow, inside)
    remaining = {key: raw for key, raw in fields(hollow[start:stop]).items() if key not in names}
    return conversation.with_body(hollow[:start] + encode(remaining) + hollow[stop:])


def remove_tools(conversation: Conversation, removed: Callable[[str], bool]) -> Conversation | None:
    """Return the request without some tools; None if they cannot be removed.

    Use it for a model that ignores `tool_choice`: the provider must read the complete request
    again.
    """
    removed_tools = [tool for tool in conversation.tools if removed(tool.name)]
    depth = len(conversation.frame.place) - 1
    if any(tool.place[depth] != "tools" for tool in removed_tools):  # OpenAI's legacy `functions`
        return None
    remaining_messages = tuple(m for m in conversation.messages if not _adds_only(m, removed))
    if len(remaining_messages) < len(conversation.messages):
        conversation = conversation.with_messages(remaining_messages)
    if len(removed_tools) < len(conversation.tools):
        return without_tools(conversation, removed_tools) if removed_tools else conversation
    return without_fields(conversation, _TOOL_FIELDS) if removed_tools else conversation


_TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls", "toolConfig", "tool_config")
"""Fields that providers reject in a request without tools."""


def _adds_only(message: Message, removed: Callable[[str], bool]) -> bool:
    """Return whether a message only adds tools that are removed."""
    added = tools_added(message)
    return bool(added) and all(removed(tool.name) for tool in added)


def with_tool_list(conversation: Conversation, change: Callable[[bytes], bytes]) -> Conversation:
    """Return the request with its tool list rewritten."""
    place: Place = (*conversation.frame.place[:-1], "tools")
    hollow = conversation.frame.hollow
    start, stop = offsets(hollow, place)
    tool_list = change(hollow[start:stop])
    return conversation.with_frame(_replace(conversation.frame, start, stop, tool_list))


def _remaining(raw: bytes, place: Place, removed_places: Collection[Place]) -> bytes:
    """Return a tool list without some tools; Gemini's empty groups are removed."""
    entries = []
    for n, entry in enumerate(map(bytes, items(raw))):
        at = (*place, n)
        if at not in removed_places and (
            remaining_entry := _remaining_entry(entry, at, removed_places)
        ):
            entries.append(remaining_entry)
    return b"[" + b",".join(entries) + b"]"


def _remaining_entry(entry: bytes, place: Place, removed_places: Collection[Place]) -> bytes:
    """Return a list entry without the removed tools inside it; empty if nothing remains."""
    for key in _DECLARATIONS:
        inside = [member for member in removed_places if member[:-1] == (*place, key)]
        if inside:
            group = fields(entry)
            remaining_list = _remaining(bytes(group[key]), (*place, key), inside)
            if remaining_list == b"[]" and len(group) == 1:
                return b""
            return splice(entry, (key,), remaining_list)
    return entry


_KNOWN = {
    "openai-chat": frozenset({"name", "description", "parameters", "strict"}),
    "openai-responses": frozenset({"type", "name", "description", "parameters", "strict"}),
    "anthropic": frozenset(
        {"type", "name", "description", "input_schema", "strict", "cache_control"}
    ),
    "gemini": frozenset(
        {"name", "description", "parameters", "parametersJsonSchema", "parameters_json_schema"}
    ),
}
"""Members of a definition that a schema given later can replace."""
_PLAIN_TYPES = ("function", "custom", None)


def offered_tools(conversation: Conversation) -> tuple[Tool, ...]:
    """Return all callable tools: those of the body and those that messages added."""
    if conversation.dialect not in _TAKING:
        return conversation.tools
    return conversation.tools + _ADDED.over(conversation)


def adds_tools(conversation: Conversation) -> bool:
    """Return whether items of a Responses request add tools, as Codex does for new models."""
    return conversation.dialect == openai_responses.NAME and bool(_ADDED.over(conversation))


def has_tools(message: Message) -> bool:
    """Return whether a message adds tools."""
    return bool(tools_added(message))


def tools_added(message: Message) -> tuple[Tool, ...]:
    """Return the tools that a message adds, if its dialect allows it."""
    return _with_added((), (message,)) if message.dialect in _TAKING else ()


def changes_tools(model: str) -> bool:
    """Return whether an Anthropic model accepts tools in mid-conversation."""
    return claude_since(model, _CHANGES_TOOLS)


def claude_since(model: str, first: Mapping[str, tuple[int, int]]) -> bool:
    """Return whether a model is a Claude model, at least the given version of its family."""
    name = _CLAUDE.search(model)
    return name is not None and (int(name[2]), int(name[3] or 0)) >= first[name[1]]


def tool_message(dialect: str, definition: Mapping[str, Any]) -> Message:
    """Return a message that adds one tool from its position on."""
    value: dict[str, Any]
    if dialect == openai_responses.NAME:
        value = {"type": _ITEM, "role": "developer", "tools": [definition]}
    else:
        tool = {"type": "tool_definition", "definition": definition}
        value = {"role": "system", "content": [{"type": _BLOCK, "tool": tool}]}
    return Message(encode(value), "system", _TAKING[dialect])


def _with_added(tools: tuple[Tool, ...], messages: Sequence[Message]) -> tuple[Tool, ...]:
    for message in messages:
        if message.role == "system":  # only system messages can add tools
            body = {"tools": list(_definitions(message.value))}
            tools += _TAKING[message.dialect].tools(body)
    return tools


def _definitions(value: Any) -> Iterator[Any]:
    """Yield the tools that a message defines, including those in namespaces."""
    if take(value, "type") == _ITEM:
        for tool in _as_list(value, "tools"):
            yield from _as_list(tool, "tools") if take(tool, "type") == "namespace" else (tool,)
    for block in _as_list(value, "content"):
        if take(block, "type") == _BLOCK and (definition := inner(block, "tool", "definition")):
            yield definition


def _as_list(value: Any, key: str) -> list[Any]:
    members = value.get(key) if isinstance(value, dict) else None
    return members if isinstance(members, list) else []


_ADDED: PrefixNote[tuple[Tool, ...]] = PrefixNote("added tools", (), _with_added)


def _extended_list(raw: bytes, offered: list[Any], definition: Mapping[str, Any]) -> bytes:
    """Return a tool list with one more tool; for Gemini, in the first group of functions."""
    for n, group in enumerate(offered):
        for key in _DECLARATIONS:
            if isinstance(group, dict) and isinstance(group.get(key), list):
                declared = fields(items(raw)[n])[key]
                more = _append_element(bytes(declared), encode(definition[_DECLARATIONS[0]][0]))
                return splice(raw, (n, key), more)
    return _append_element(raw, encode(definition))


def _append_element(raw: bytes, element: bytes) -> bytes:
    before = raw[:-1].rstrip()
    return before + (b"" if before == b"[" else b",") + element + b"]"


def _find(value: Any, place: Place) -> Any:
    for step in place:
        if isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(frame: BodyFrame, hollow: bytes, place: Place, value: bytes) -> BodyFrame:
    """Set a missing or null member of the body, creating the objects around it."""
    top = fields(hollow)
    for depth, key in enumerate(place):
        member = top.get(str(key))
        if member is None:
            for missing in reversed(place[depth + 1 :]):
                value = b"{" + encode(missing) + b":" + value + b"}"
            _, stop = offsets(hollow, place[:depth])
            empty = not top
            entry = (b"" if empty else b",") + encode(key) + b":" + value
            return _replace(frame, stop - 1, stop - 1, entry)
        if not bytes(member).startswith(b"{"):
            start, stop = offsets(hollow, place[: depth + 1])
            for missing in reversed(place[depth + 1 :]):
                value = b"{" + encode(missing) + b":" + value + b"}"
            return _replace(frame, start, stop, value)
        top = fields(member)
    return frame


def _replace(frame: BodyFrame, start: int, stop: int, new: bytes) -> BodyFrame:
    """Replace bytes in the body without its messages."""
    before = len(frame.head)
    if stop <= before:
        return msgspec.structs.replace(frame, head=frame.head[:start] + new + frame.head[stop:])
    start, stop = (n - (len(frame.hollow) - len(frame.tail)) for n in (start, stop))
    return msgspec.structs.replace(frame, tail=frame.tail[:start] + new + frame.tail[stop:])
