"""Read request bodies for counting, reusing conversations read before.

Besides the dialects of `wire` this accepts xAI's own requests, and the two dialect names that
recorded OpenAI requests use. Reuse affects only the speed, never the result.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from holdfast.errors import HoldfastError, ShapeError
from holdfast.tokens import xai
from holdfast.wire import Conversation, Limits, detect, read
from holdfast.wire.strict import check_keys, parse, to_bytes

_DIALECT_ALIASES = {"chat": "openai-chat", "responses": "openai-responses"}
_LONG = 65_536
"""From this size on, a body that continues an earlier one keeps its dialect without detection:
detection reads only the first dozen messages, which are equal.
"""


def read_request(body: object, dialect: str | None, limits: Limits) -> Conversation:
    """Read a request in any dialect that can be counted."""
    raw = to_bytes(body, limits)
    if dialect == xai.NAME:
        return read(xai.as_chat(_parse_within_limits(raw, limits)), "openai-chat", limits=limits)
    try:
        named = _DIALECT_ALIASES.get(dialect, dialect) if isinstance(dialect, str) else dialect
        return recent_conversations.read(raw, named, limits)
    except ShapeError:
        if dialect is None and xai.is_xai_request(value := _parse_within_limits(raw, limits)):
            return read(xai.as_chat(value), "openai-chat", limits=limits)
        raise


class RecentConversations:
    """The latest conversations, so that the next turn parses only the added messages.

    At most 16 conversations and 64 MB are kept.
    """

    def __init__(self, most_bytes: int = 64_000_000) -> None:
        self._kept: deque[tuple[str | None, Conversation]] = deque(maxlen=16)
        self._lock = threading.Lock()
        self._most_bytes = most_bytes

    def read(self, raw: bytes, dialect: str | None, limits: Limits) -> Conversation:
        """Read a body, continuing from a conversation that it may extend."""
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
            # Additional messages may reveal the dialect.
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
        """Return the total bytes of the stored bodies."""
        return sum(len(conversation.source or b"") for _, conversation in self._kept)

    def __len__(self) -> int:
        return len(self._kept)


recent_conversations = RecentConversations()
"""Conversations that `count` reuses."""


def _continues(previous: Conversation, raw: bytes) -> bool:
    """Return whether a body may continue an older one; `read` compares them fully."""
    source = previous.source or b""
    end = len(source) - len(previous.frame.tail)
    return source[max(0, end - 64) : end] == raw[max(0, end - 64) : end] != b""


def is_request(text: str) -> bool:
    """Return whether a text is a request body rather than plain text."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        detect(text)
    except HoldfastError:
        return False
    return True


def _parse_within_limits(raw: bytes, limits: Limits) -> Any:
    """Return the JSON value of a body, within the limits."""
    check_keys(raw, limits)
    return parse(raw)
