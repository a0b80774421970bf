"""Read Cohere's responses (v2 chat), and observe their streams.

Streams pass through unchanged: nothing in them is hidden, joined or translated.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import ProviderError
from holdfast.wire.responses.shared import load
from holdfast.wire.responses.sse import EventParser
from holdfast.wire.values import inner, take

_FAILED = ("ERROR", "TIMEOUT", "ERROR_TOXIC", "ERROR_LIMIT")
"""Stop reasons that mean a failure rather than a decision of the model."""


def turn_of(value: dict[str, Any]) -> list[Any]:
    """Return the assistant's turn, as the next request would contain it."""
    message = inner(value, "message")
    return [message] if message else []


def stop_of(value: dict[str, Any]) -> str:
    """Return the stop reason."""
    return take(value, "finish_reason")


def usage_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the reported usage: the tokens of the prompt, otherwise the billed ones.

    Cohere bills fewer tokens than the model reads, for instance not its own preamble.
    """
    usage = inner(value, "usage")
    return inner(usage, "tokens") or inner(usage, "billed_units")


class CohereObserver:
    """Observes a passing stream: its end and its usage."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] = {}
        self.ended = False
        self.failed = False
        """Whether it ended with an error, or is not a stream of events."""
        self._events = EventParser()

    def feed(self, chunk: bytes) -> None:
        """Process bytes that go to the client."""
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
            return  # a text that only mentions the end
        delta = inner(value, "delta")
        self.usage = usage_of(delta)
        self.failed = stop_of(delta) in _FAILED
        self.ended = not self.failed
