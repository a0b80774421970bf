"""What is to be counted: a body in any dialect, read as what was added to one read before.

reading: between the wire layer and counting. Beside the dialects of the wire layer it understands
xAI's own requests, and the names under which recorded requests call the two of OpenAI. Which
bodies were counted before makes no difference to how one is read, only to how fast.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from holdfast.errors import HoldfastError, ShapeError
from holdfast.tokens import xai
from holdfast.wire import Conversation, Limits, detect, read
from holdfast.wire.strict import check_keys, parse, to_bytes

_OTHER_NAMES = {"chat": "openai-chat", "responses": "openai-responses"}
_LONG = 65_536
"""From this many bytes on, a body that goes on from another keeps its dialect: detection looks at
the first dozen messages, which are the same."""


def read_request(body: object, dialect: str | None, limits: Limits) -> Conversation:
    """Read a request in any dialect that can be counted."""
    raw = to_bytes(body, limits)
    if dialect == xai.NAME:
        return read(xai.as_chat(_parsed(raw, limits)), "openai-chat", limits=limits)
    try:
        named = _OTHER_NAMES.get(dialect, dialect) if isinstance(dialect, str) else dialect
        return recent.read(raw, named, limits)
    except ShapeError:
        if dialect is None and xai.speaks(value := _parsed(raw, limits)):
            return read(xai.as_chat(value), "openai-chat", limits=limits)
        raise


class RecentReadings:
    """The conversations that were read last, so that the next turn is read as what was added.

    At most 16, and 64 MB of them.
    """

    def __init__(self, most_bytes: int = 64_000_000) -> None:
        self._kept: deque[tuple[str | None, Conversation]] = deque(maxlen=16)
        self._lock = threading.Lock()
        self._most_bytes = most_bytes

    def read(self, raw: bytes, dialect: str | None, limits: Limits) -> Conversation:
        """Read a body, going on from one that it may continue."""
        with self._lock:
            recent_readings = tuple(self._kept)
        previous_reading = next(
            (
                reading
                for reading in recent_readings
                if reading[0] == dialect and _continues(reading[1], raw)
            ),
            None,
        )
        previous = previous_reading[1] if previous_reading is not None else None
        if previous is not None and dialect is None and len(raw) < _LONG:
            # More messages may say more about the dialect.
            previous = previous if detect(raw, limits=limits) == previous.dialect else None
        conversation = read(raw, dialect, previous=previous, limits=limits)
        with self._lock:
            if previous_reading is not None and previous_reading in self._kept:
                self._kept.remove(previous_reading)
            self._kept.append((dialect, conversation))
            while self.size > self._most_bytes:
                self._kept.popleft()
        return conversation

    @property
    def size(self) -> int:
        """Bytes of the bodies that are kept."""
        return sum(len(kept.source or b"") for _, kept in self._kept)

    def __len__(self) -> int:
        return len(self._kept)


recent = RecentReadings()
"""What `count` keeps."""


def _continues(old: Conversation, raw: bytes) -> bool:
    """Whether a body may continue an older one; `read` looks closely."""
    source = old.source or b""
    end = len(source) - len(old.frame.tail)
    return source[max(0, end - 64) : end] == raw[max(0, end - 64) : end] != b""


def is_request(text: str) -> bool:
    """Whether a text is the body of a request, not just text to be counted."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        detect(text)
    except HoldfastError:
        return False
    return True


def _parsed(raw: bytes, limits: Limits) -> Any:
    """The JSON value of a body, within the limits."""
    check_keys(raw, limits)
    return parse(raw)
