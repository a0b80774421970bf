"""Small readings of untrusted JSON values, shared by the dialects."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.errors import EditError
from holdfast.wire.blocks import Block, text_of
from holdfast.wire.strict import encode


def take(value: Any, *keys: str) -> str:
    """Follow keys to a string; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def inner(value: Any, *keys: str) -> dict[str, Any]:
    """Follow keys to an object; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def first(value: dict[str, Any], *keys: str) -> Any:
    """The value under the first of several spellings of a key; None if there is none."""
    for key in keys:
        if key in value:
            return value[key]
    return None


def join_text(blocks: Iterable[Block]) -> str:
    """The text of several blocks, one below the other."""
    return "\n".join(text for block in blocks if (text := text_of(block)))


def json_text(value: Any) -> str:
    """A JSON value as text; text stays as it is."""
    return value if isinstance(value, str) else encode(value).decode()


class UniqueNames:
    """Names of which none is given twice: `a`, `a_2`, `a_3`."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._last)

    def take(self, wanted: str) -> str:
        """Give the wanted name, or the first like it that is free."""
        name = wanted
        while name in self._last:
            # Counting on from the last number keeps many equal names from costing their square.
            self._last[wanted] += 1
            name = f"{wanted}_{self._last[wanted]}"
        self._last[name] = 1
        return name


def as_json(arguments: Any) -> Any:
    """Arguments as a JSON object, whether they came as text or as a value."""
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError, msgspec.MsgspecError):
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
    if isinstance(arguments, dict):
        return arguments
    return {} if arguments is None else {"arguments": arguments}


def parsed(text: str) -> Any:
    """New arguments for a call, which must be a JSON object."""
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        value = None
    if not isinstance(value, dict):
        raise EditError(
            "the arguments of a tool call must be a JSON object",
            fix="Pass the new arguments as JSON text.",
        )
    return value
