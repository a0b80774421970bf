"""The tokens of a request's frame: what a renderer gives for everything but the messages."""

from __future__ import annotations

import json
from typing import Any

import msgspec


class Envelope(msgspec.Struct, frozen=True):
    """Tokens of everything but the messages."""

    system: float = 0
    tools: float = 0
    formatting: float = 0
    per_answer: float = 0
    """What each assistant message costs more because of the frame."""


def compact_json(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spaced_json(value: Any) -> str:
    """JSON as Python prints it."""
    return json.dumps(value, ensure_ascii=False)


def arguments_value(arguments: Any) -> Any:
    """A call's arguments, or a schema, as a value; text that is no JSON stays text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def arguments_text(arguments: Any) -> str:
    """A call's arguments as compact JSON where they parse, else as sent."""
    value = arguments_value(arguments)
    return arguments if value is arguments and isinstance(value, str) else compact_json(value)
