"""What messages of recorded agents say, and where a run of characters stands in them as written.

reuse: before recording. How reuse is measured is the engine's own: see engine/session_replay.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from holdfast.engine.session_replay import strings

_AS_WRITTEN = {" ": r"(?:\s|\\[nrt])+", '"': r'\\*"', "/": r"\\?/", "\\": r"\\+"}


def place_of(run: str, text: str) -> tuple[int, int] | None:
    """Where a run stands in a text as it is written; None if it does not."""
    pattern = "".join(_AS_WRITTEN.get(sign) or re.escape(sign) for sign in run)
    match = re.search(pattern, text)
    return match.span() if match else None


def texts_of(message: dict[str, Any]) -> Iterator[str]:
    """What a message says: its text, and the values that its calls are given."""
    yield from strings(message.get("content"))
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        try:
            yield from strings(json.loads(arguments))
        except ValueError:
            yield arguments
