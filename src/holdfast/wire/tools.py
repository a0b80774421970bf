"""Offer one more tool in a request; everything else keeps its very bytes.

tools: after conversation. What a tool's definition says is its owner's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.wire.conversation import Conversation
from holdfast.wire.frame import Frame
from holdfast.wire.pointing import Place
from holdfast.wire.strict import encode, fields, items, offsets, splice

_DECLARATIONS = ("functionDeclarations", "function_declarations")


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
