"""Observe streams of dialects in which nothing is hidden, without changing them.

`relay` drives the streams of all other dialects.
"""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.wire.responses.cohere import CohereObserver
from holdfast.wire.responses.converse import ConverseObserver


class StreamObserver(Protocol):
    """The observed state of a stream."""

    usage: dict[str, Any]
    """Reported usage; empty if none was reported."""
    ended: bool
    """Whether the stream reached its end."""
    failed: bool
    """Whether it reported an error or is unreadable; then nothing more is read."""

    def feed(self, chunk: bytes) -> None:
        """Process bytes that go to the client."""


_WATCHES: dict[str, type[StreamObserver]] = {"converse": ConverseObserver, "cohere": CohereObserver}


def observe_stream(dialect: str) -> StreamObserver:
    """Return an observer for a stream of a dialect that is not in `CONTINUED`."""
    return _WATCHES[dialect]()
