"""Join one or several upstream streams into one client stream.

The client receives every event except those of hidden calls. An end passes through immediately
unless the proxy may continue; then it is held back until `release`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.wire.responses.shared import (
    HandedCalls,
    IsHidden,
    ModelCall,
    add_usage,
    context_usage,
    load,
    with_account,
)
from holdfast.wire.responses.sse import Event, write_event
from holdfast.wire.strict import encode


class Joiner(ABC):
    """The common base of the dialects' joiners; the relay reads these fields between streams."""

    def __init__(self, hidden: IsHidden, *, hide_usage: bool = False) -> None:
        self.hidden = hidden
        self.hide_usage = hide_usage
        """Whether the proxy requested the usage, not the client: it is read but not passed on."""
        self.continued = False
        """Whether this is not the first upstream stream."""
        self.spoken = False
        """Whether the client received text or a call."""
        self.usages: list[dict[str, Any]] = []
        """Usage of each earlier upstream stream."""
        self.billed: dict[str, Any] = {}
        """Sum of the earlier usages."""
        self.told: dict[str, Any] = {}
        """The earlier usage as reported to the client."""
        self.streams = 1
        self.failed = False
        self.error: Any = None
        """The event in which the provider reported an error."""
        self._reset()

    def _reset(self) -> None:
        self.secretive = False
        """Whether this upstream stream contains a hidden call."""
        self.hands = False
        """Whether one of its hidden calls was handed to the client as a call of its own tool."""
        self.usage: dict[str, Any] = {}
        self.stop_reason = ""
        self.upstream_id = ""
        """The provider's id of this response."""
        self.ended = False
        self.over = False
        """Whether the provider announced that nothing follows; not all do."""
        self.tail: list[tuple[Event, Any]] = []
        """End events that are held back."""

    @property
    def holding(self) -> bool:
        """Return whether ends are held back: the proxy may continue, or nothing was emitted."""
        return self.secretive or (self.continued and not self.spoken)

    @property
    def total(self) -> dict[str, Any]:
        """Return the summed usage of all upstream streams, as billed."""
        return add_usage(self.billed, self.usage)

    @property
    def reported(self) -> dict[str, Any]:
        """Return the usage reported to the client: the latest stream's context, all output."""
        usage = context_usage(self.told, self.usage)
        return with_account(usage, self.total, self.streams)

    def take(self, event: Event, out: list[bytes]) -> None:
        """Process an upstream event; append the client's events to `out`."""
        value = load(event.data) if event.data is not None else None
        if not isinstance(value, dict):
            self.odd(event, out)
        elif value.get("error"):
            self.failed, self.error = True, value
            self.flush(out)
            out.append(event.raw)
        else:
            self.join(value, event, out)

    def odd(self, event: Event, out: list[bytes]) -> None:
        """Process an event without a JSON object: a comment, or invalid data for the client."""
        out.append(event.raw)

    def flush(self, out: list[bytes]) -> None:  # noqa: B027 - most dialects hold nothing back
        """Emit what waits for a later event, because none follows."""

    def held(self) -> list[Event]:
        """Return the events that were received but not emitted."""
        return [event for event, _ in self.tail]

    def restart(self) -> None:
        """Prepare for the next upstream stream."""
        self.told = context_usage(self.told, self.usage)
        self.billed = self.total
        self.usages.append(self.usage)
        self.streams += 1
        self.continued = True
        self._reset()

    def release(self, out: list[bytes]) -> None:
        """Emit the ends that were held back, adjusted to what the client saw."""
        for event, value in self.tail:
            self.end(value, event, out)
        self.tail = []

    def hand(self, handed: HandedCalls, out: list[bytes]) -> None:
        """Emit calls of the client's own tools in place of hidden ones."""
        self.hands = self.spoken = True
        self.give_calls(handed, out)

    @abstractmethod
    def give_calls(self, handed: HandedCalls, out: list[bytes]) -> None:
        """Emit complete calls after everything emitted so far."""

    @abstractmethod
    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Process an event with a JSON object."""

    @abstractmethod
    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Emit an end that was held back."""

    @abstractmethod
    def messages(self) -> list[Any]:
        """Return the assistant's turn of this upstream stream, as the next request contains it."""

    @abstractmethod
    def calls(self) -> list[ModelCall]:
        """Return the calls of this upstream stream, including hidden ones."""

    @property
    def visible(self) -> bool:
        """Return whether this upstream stream contains a call that the client sees."""
        return self.hands or any(not self.hidden(call.name) for call in self.calls())


def changed_event(value: Any, event: Event) -> bytes:
    """Return the event with another value."""
    return write_event(encode(value), event.name, event.id)
