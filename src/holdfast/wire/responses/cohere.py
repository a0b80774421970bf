"""Cohere's answers (v2 chat): read whole, and watched as a stream of events.

cohere: after shared. Nothing is hidden in them, joined or translated; streams pass as they come.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import ProviderError
from holdfast.wire.responses.shared import load
from holdfast.wire.responses.sse import EventParser
from holdfast.wire.values import inner, take

_FAILED = ("ERROR", "TIMEOUT", "ERROR_TOXIC", "ERROR_LIMIT")
"""Reasons to stop that are none of the model's."""


def turn_of(value: dict[str, Any]) -> list[Any]:
    """The assistant's turn, as the next request would hold it."""
    message = inner(value, "message")
    return [message] if message else []


def stop_of(value: dict[str, Any]) -> str:
    """Why the model stopped."""
    return take(value, "finish_reason")


def usage_of(value: dict[str, Any]) -> dict[str, Any]:
    """The tokens that were reported: those of the prompt, else those that were billed.

    Cohere bills fewer than the model reads, its own preamble for instance.
    """
    usage = inner(value, "usage")
    return inner(usage, "tokens") or inner(usage, "billed_units")


class CohereWatch:
    """Looks at a stream that passes: whether it came to its end, and what it reports."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] = {}
        self.ended = False
        self.failed = False
        """It ended with an error, or is no stream of events."""
        self._events = EventParser()

    def feed(self, chunk: bytes) -> None:
        """Take bytes that go to the client."""
        if self.failed:
            return
        try:
            events = self._events.feed(chunk)
        except ProviderError:
            self.failed = True
            return
        for event in events:
            if event.data is not None and b"message-end" in event.data:
                self._take(load(event.data))

    def _take(self, value: Any) -> None:
        if not isinstance(value, dict) or value.get("type") != "message-end":
            return  # a text that only speaks of it
        delta = inner(value, "delta")
        self.usage = usage_of(delta)
        self.failed = stop_of(delta) in _FAILED
        self.ended = not self.failed
