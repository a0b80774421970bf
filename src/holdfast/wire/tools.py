"""Offer one more tool in a request; everything else keeps its very bytes.

tools: after conversation and running. What a tool's definition says is its owner's business. Tools
stand first in what vendors cache; two dialects can also take one in a message, from there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.wire import anthropic, openai_responses
from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.dialect import Dialect
from holdfast.wire.frame import Frame
from holdfast.wire.message import Message
from holdfast.wire.pointing import Place
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import encode, fields, items, offsets, splice
from holdfast.wire.values import inner, take

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_TAKING: dict[str, Dialect] = {
    anthropic.NAME: anthropic,
    openai_responses.NAME: openai_responses,
}
"""The dialects in which a message can offer tools."""
_ITEM = "additional_tools"
_BLOCK = "tool_addition"
INLINE_BETA = "inline-tools-2026-09-15"
"""What a request to Anthropic must name in `anthropic-beta` to define tools in a message."""
_CLAUDE = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d))?(?!\d)")
_CHANGES_TOOLS = {
    "opus": (4, 8),
    "sonnet": (5, 5),
    "haiku": (5, 5),
    "fable": (5, 0),
    "mythos": (5, 0),
}
"""The first model of each family whose tools can change in the middle of a conversation; from
platform.claude.com, build-with-claude/mid-conversation-system-messages."""


def with_tool(conversation: Conversation, definition: Mapping[str, Any]) -> Conversation:
    """Offer one more tool, in the dialect's own form, behind those that are there."""
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
    listed = _extended(hollow[start:stop], offered, definition)
    return conversation.with_frame(_replace(frame, start, stop, listed))


def offered_tools(conversation: Conversation) -> tuple[Tool, ...]:
    """All tools that the model may call: those of the body, and those that messages have added."""
    if conversation.dialect not in _TAKING:
        return conversation.tools
    return conversation.tools + _ADDED.over(conversation)


def adds_tools(conversation: Conversation) -> bool:
    """Whether items of a Responses request add tools, as all of Codex's come to new models."""
    return conversation.dialect == openai_responses.NAME and bool(_ADDED.over(conversation))


def has_tools(message: Message) -> bool:
    """Whether a message adds tools."""
    return bool(_with_added((), (message,)))


def changes_tools(model: str) -> bool:
    """Whether a model of Anthropic's takes tools in the middle of a conversation."""
    name = _CLAUDE.search(model)
    return name is not None and (int(name[2]), int(name[3] or 0)) >= _CHANGES_TOOLS[name[1]]


def tool_message(dialect: str, definition: Mapping[str, Any]) -> Message:
    """A message that offers one more tool from its place on."""
    value: dict[str, Any]
    if dialect == openai_responses.NAME:
        value = {"type": _ITEM, "role": "developer", "tools": [definition]}
    else:
        tool = {"type": "tool_definition", "definition": definition}
        value = {"role": "system", "content": [{"type": _BLOCK, "tool": tool}]}
    return Message(encode(value), "system", _TAKING[dialect])


def _with_added(tools: tuple[Tool, ...], messages: Sequence[Message]) -> tuple[Tool, ...]:
    for message in messages:
        if message.role == "system":  # all others cost no more than this
            body = {"tools": list(_definitions(message.value))}
            tools += _TAKING[message.dialect].tools(body)
    return tools


def _definitions(value: Any) -> Iterator[Any]:
    """The tools that a message defines, those in namespaces too."""
    if take(value, "type") == _ITEM:
        for tool in _listed(value, "tools"):
            yield from _listed(tool, "tools") if take(tool, "type") == "namespace" else (tool,)
    for block in _listed(value, "content"):
        if take(block, "type") == _BLOCK and (definition := inner(block, "tool", "definition")):
            yield definition


def _listed(value: Any, key: str) -> list[Any]:
    members = value.get(key) if isinstance(value, dict) else None
    return members if isinstance(members, list) else []


_ADDED: RunningNote[tuple[Tool, ...]] = RunningNote("added tools", (), _with_added)


def _extended(raw: bytes, offered: list[Any], definition: Mapping[str, Any]) -> bytes:
    """A list of tools with one more; Gemini groups its functions, and one group is enough."""
    for n, group in enumerate(offered):
        for key in _DECLARATIONS:
            if isinstance(group, dict) and isinstance(group.get(key), list):
                declared = fields(items(raw)[n])[key]
                more = _appended(bytes(declared), encode(definition[_DECLARATIONS[0]][0]))
                return splice(raw, (n, key), more)
    return _appended(raw, encode(definition))


def _appended(raw: bytes, element: bytes) -> bytes:
    before = raw[:-1].rstrip()
    return before + (b"" if before == b"[" else b",") + element + b"]"


def _find(value: Any, place: Place) -> Any:
    for step in place:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(frame: Frame, hollow: bytes, place: Place, value: bytes) -> Frame:
    """Set a member of the body that is missing or null, with the objects around it."""
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


def _replace(frame: Frame, start: int, stop: int, new: bytes) -> Frame:
    """Put bytes in the place of others, in the body without its messages."""
    before = len(frame.head)
    if stop <= before:
        return msgspec.structs.replace(frame, head=frame.head[:start] + new + frame.head[stop:])
    start, stop = (n - (len(frame.hollow) - len(frame.tail)) for n in (start, stop))
    return msgspec.structs.replace(frame, tail=frame.tail[:start] + new + frame.tail[stop:])
