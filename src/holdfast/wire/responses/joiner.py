"""One client stream made of one upstream stream or several, whatever the dialect.

joiner: after shared; each dialect's own follows it, and the relay drives them.

The client sees every event but those of hidden calls. An end is passed on as it comes, unless the
proxy may go on: then it is held back until `release`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.wire.responses.shared import (
    Call,
    Handed,
    Hidden,
    add_usage,
    context_usage,
    load,
    with_account,
)
from holdfast.wire.responses.sse import Event, write_event
from holdfast.wire.strict import encode


class Joiner(ABC):
    """What all dialects' joiners are; the relay reads these fields between streams."""

    def __init__(self, hidden: Hidden, *, hide_usage: bool = False) -> None:
        self.hidden = hidden
        self.hide_usage = hide_usage
        """The proxy asked for the usage, not the client: it is read and not passed on."""
        self.continued = False
        """This is not the first upstream stream."""
        self.spoken = False
        """The client was given text or a call."""
        self.usages: list[dict[str, Any]] = []
        """The usage of each upstream stream before this one."""
        self.billed: dict[str, Any] = {}
        """Their sum."""
        self.told: dict[str, Any] = {}
        """The same as the client is told of it."""
        self.streams = 1
        self.failed = False
        self.error: Any = None
        """The event with which the provider reported an error."""
        self._reset()

    def _reset(self) -> None:
        self.secretive = False
        """This upstream stream holds a hidden call."""
        self.hands = False
        """One of its hidden calls was handed to the client as a call of its own tool."""
        self.usage: dict[str, Any] = {}
        self.stop_reason = ""
        self.upstream_id = ""
        """The id that the provider gave this answer."""
        self.ended = False
        self.over = False
        """The provider has said that nothing follows; not all do."""
        self.tail: list[tuple[Event, Any]] = []
        """The ends that are held back."""

    @property
    def holding(self) -> bool:
        """Whether ends are held back: the proxy may go on, or the answer would be empty."""
        return self.secretive or (self.continued and not self.spoken)

    @property
    def total(self) -> dict[str, Any]:
        """The usage of all upstream streams, summed: what was billed."""
        return add_usage(self.billed, self.usage)

    @property
    def reported(self) -> dict[str, Any]:
        """The usage that the client is told: the context of the latest stream, all output."""
        usage = context_usage(self.told, self.usage)
        return with_account(usage, self.total, self.streams)

    def take(self, event: Event, out: list[bytes]) -> None:
        """Take an event of the upstream; put what the client gets into `out`."""
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
        """Take an event that is no object: a comment, or what the client shall judge."""
        out.append(event.raw)

    def flush(self, out: list[bytes]) -> None:  # noqa: B027 - most dialects keep nothing back
        """Give what waits for a later event, for there will be none."""

    def held(self) -> list[Event]:
        """Return the events that were taken and not given."""
        return [event for event, _ in self.tail]

    def restart(self) -> None:
        """Make ready for the next upstream stream."""
        self.told = context_usage(self.told, self.usage)
        self.billed = self.total
        self.usages.append(self.usage)
        self.streams += 1
        self.continued = True
        self._reset()

    def release(self, out: list[bytes]) -> None:
        """Give the ends that were held back, true for what the client has seen."""
        for event, value in self.tail:
            self.end(value, event, out)
        self.tail = []

    def hand(self, handed: Handed, out: list[bytes]) -> None:
        """Give the client calls of its own tools, in the place of hidden ones."""
        self.hands = self.spoken = True
        self.give_calls(handed, out)

    @abstractmethod
    def give_calls(self, handed: Handed, out: list[bytes]) -> None:
        """Put whole calls into the stream, behind what came so far."""

    @abstractmethod
    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Take an event that is an object."""

    @abstractmethod
    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Give an end that was held back."""

    @abstractmethod
    def messages(self) -> list[Any]:
        """The assistant's turn of this upstream stream, as the next request has it."""

    @abstractmethod
    def calls(self) -> list[Call]:
        """The calls of this upstream stream, hidden ones too."""

    @property
    def visible(self) -> bool:
        """Whether this upstream stream holds a call that the client sees."""
        return self.hands or any(not self.hidden(call.name) for call in self.calls())


def changed(value: Any, event: Event) -> bytes:
    """The event with another value."""
    return write_event(encode(value), event.name, event.id)
