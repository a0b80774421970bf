"""The calls that results answer, and the words among their arguments.

calls: before pointing and arrival; it knows messages as they stand in a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.wire import Message, ToolCall

_ARGUMENT_CHARACTERS = 200


def calls_before(messages: Sequence[Message], index: int) -> dict[str, ToolCall]:
    """The calls that a message may answer, by id and by name: those of the turn before it."""
    calls: dict[str, ToolCall] = {}
    for n in range(index - 1, -1, -1):
        message = messages[n]
        for call in message.calls:
            for name in filter(None, (call.id, call.name)):  # Gemini's calls may have no ids
                calls.setdefault(name, call)
        if message.calls and not messages[n - 1].calls:
            break  # a turn of the assistant may be several messages, one for each call
    return calls


def scalars(arguments: Any) -> list[str]:
    """The beginnings of the texts among a call's arguments."""
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return [arguments[:_ARGUMENT_CHARACTERS]]
    values = arguments.values() if isinstance(arguments, dict) else ()
    return [v[:_ARGUMENT_CHARACTERS] for v in values if isinstance(v, str) and v]
