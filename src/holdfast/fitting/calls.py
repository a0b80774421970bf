"""The calls that results answer, and the words among their arguments.

calls: before pointing and arrival; it knows messages as they stand in a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.wire import Message, ToolCall, ToolResult

_ARGUMENT_CHARACTERS = 200


def calls_before(messages: Sequence[Message], index: int) -> list[ToolCall]:
    """The calls that a message may answer: those of the turn before it."""
    calls: list[ToolCall] = []
    for n in range(index - 1, -1, -1):
        of_message = messages[n].calls
        calls.extend(reversed(of_message))
        if of_message and not messages[n - 1].calls:
            break  # a turn of the assistant may be several messages, one for each call
    calls.reverse()
    return calls


def call_of(result: ToolResult, message: Message, calls: Sequence[ToolCall]) -> ToolCall | None:
    """The call that a result of a message answers; None if that cannot be told.

    Gemini's may have no ids: of several calls to one tool, each is answered in its turn.
    """
    if result.call_id:
        for call in reversed(calls):
            if call.id == result.call_id:
                return call
    named = [call for call in calls if result.name and call.name == result.name]
    if len(named) <= 1:
        return named[0] if named else None
    alike = [each.place for each in message.results if each.name == result.name]
    return named[alike.index(result.place)] if len(alike) == len(named) else None


def scalars(arguments: Any) -> list[str]:
    """The beginnings of the texts among a call's arguments."""
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return [arguments[:_ARGUMENT_CHARACTERS]]
    values = arguments.values() if isinstance(arguments, dict) else ()
    return [v[:_ARGUMENT_CHARACTERS] for v in values if isinstance(v, str) and v]
