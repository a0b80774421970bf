"""Reads the usage of a stream that passes as it comes.

meter: beside delivery, before exchange. What cannot be read is not counted, and passes all the
same.
"""

from __future__ import annotations

from typing import Any

from holdfast.faults import Faults
from holdfast.wire.responses import CONTINUED, Relay, observe_stream


class Meter:
    """The measures of one stream."""

    def __init__(self, dialect: str, faults: Faults) -> None:
        self.usage: dict[str, Any] = {}
        self.ended = False
        """Whether the stream has ended."""
        self.works = False
        """Whether the stream could be read so far."""
        self._faults = faults
        with faults.caught("usage"):
            hides_nothing = Relay(dialect, lambda _: False) if dialect in CONTINUED else None
            self._relay = hides_nothing
            self._watch = observe_stream(dialect) if hides_nothing is None else None
            self.works = True

    def feed(self, chunk: bytes) -> None:
        """Take bytes that go to the client."""
        if not self.works:
            return
        self.works = False
        with self._faults.caught("usage"):
            if self._relay is not None:
                self._relay.feed(chunk)
                self.usage, self.ended = self._relay.usage, self._relay.over
            elif self._watch is not None:
                self._watch.feed(chunk)
                self.usage, self.ended = self._watch.usage, self._watch.ended
            self.works = True
