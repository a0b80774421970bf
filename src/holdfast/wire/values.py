"""Read values from untrusted JSON; shared by the dialects."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.errors import EditError
from holdfast.wire.blocks import Block, text_of
from holdfast.wire.strict import encode


def take(value: Any, *keys: str) -> str:
    """Return the string under nested keys; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def inner(value: Any, *keys: str) -> dict[str, Any]:
    """Return the object under nested keys; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def first(value: dict[str, Any], *keys: str) -> Any:
    """Return the value of the first key that exists; None if none does."""
    for key in keys:
        if key in value:
            return value[key]
    return None


def join_text(blocks: Iterable[Block]) -> str:
    """Return the texts of several blocks, joined by line breaks."""
    return "\n".join(text for block in blocks if (text := text_of(block)))


def json_text(value: Any) -> str:
    """Return a JSON value as text; strings stay unchanged."""
    return value if isinstance(value, str) else encode(value).decode()


class UniqueNames:
    """Generates distinct names: `a`, `a_2`, `a_3`."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._last)

    def take(self, wanted: str) -> str:
        """Return the wanted name, or the next free variant of it."""
        name = wanted
        while name in self._last:
            # Continuing from the last number avoids quadratic time for many equal names.
            self._last[wanted] += 1
            name = f"{wanted}_{self._last[wanted]}"
        self._last[name] = 1
        return name


def as_json(arguments: Any) -> Any:
    """Return arguments as a JSON object, from text or a value."""
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError, msgspec.MsgspecError):
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
    if isinstance(arguments, dict):
        return arguments
    return {} if arguments is None else {"arguments": arguments}


def parse_arguments(text: str) -> Any:
    """Parse new arguments of a call; raise `EditError` if they are not a JSON object."""
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
