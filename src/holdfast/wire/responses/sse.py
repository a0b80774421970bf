"""Parse and write server-sent events.

Each event keeps its exact bytes, so that unchanged events are passed on as received. The events do
not depend on how the bytes are split into chunks, and the time is linear.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.errors import ProviderError

MAX_EVENT_BYTES = 33_554_432
"""Maximum bytes of one event; as large as a request, because an image comes in one event."""
MAX_STREAM_BYTES = 268_435_456
"""Maximum bytes of one upstream stream: a response is kept until it is complete."""

_BOM = b"\xef\xbb\xbf"
# An empty line. The groups are atomic, because `\r\n` is a single line end.
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_LONGEST_BLANK = 4


class Event(NamedTuple):
    """One event of a stream."""

    raw: bytes
    """Bytes of the event, with the empty line at its end and any empty lines before it."""
    data: bytes | None
    """Joined data lines; None for comments and empty lines."""
    name: bytes = b""
    id: bytes = b""


class EventParser:
    """Splits a stream into events; call `finish` at its end."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._rest = bytearray()
        self._returns = False
        """Whether the buffer has a carriage return; most streams have none."""
        self._began = False

    @property
    def waiting_bytes(self) -> int:
        """Return the number of bytes of an incomplete event."""
        return len(self._rest)

    @property
    def waiting(self) -> bytes:
        """Return the bytes of an incomplete event."""
        return bytes(self._rest)

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that are complete with these bytes."""
        window: bytes | bytearray
        if self._rest:
            # Searched bytes are not searched again, but an empty line may span the boundary.
            scan = max(0, len(self._rest) - _LONGEST_BLANK + 1)
            self._returns = self._returns or b"\r" in chunk
            self._rest += chunk
            window = self._rest
        else:
            scan, window = 0, chunk
            self._returns = b"\r" in chunk
        events = []
        start = 0
        while (end := self._end(window, max(scan, start))) > 0:
            events.append(self._event(bytes(window[start:end])))
            start = end
        if len(window) - start > self._max:
            raise _too_large(self._max)
        if window is self._rest:
            del self._rest[:start]
        else:
            self._rest = bytearray(window[start:])
        return events

    def finish(self) -> Event | None:
        """Return the remaining event, whose end was cut off; None if there is none."""
        if not self._rest:
            return None
        raw = bytes(self._rest)
        self._rest.clear()
        return self._event(raw)

    def _end(self, window: bytes | bytearray, start: int) -> int:
        """Return the end of the first event from `start` on; 0 if it is incomplete."""
        if not self._returns:
            at = window.find(b"\n\n", start)
            return at + 2 if at >= 0 else 0
        match = _BLANK.search(window, start)
        if match is None:
            return 0
        end = match.end()
        # A following line feed would belong to the same line end.
        return 0 if end == len(window) and window[end - 1] == 0x0D else end

    def _event(self, raw: bytes) -> Event:
        if len(raw) > self._max:
            raise _too_large(self._max)
        text = raw
        if not self._began:
            self._began = True
            text = raw.removeprefix(_BOM)
        if self._returns or not text.endswith(b"\n\n"):
            return _read(raw, text)
        # The two forms that providers send: a data line, alone or after an event line.
        last = len(text) - 2
        line = text.find(b"\n")
        if line == last and text.startswith(b"data: "):
            return Event(raw, text[6:last])
        if (
            text.startswith(b"event: ")
            and text.startswith(b"data: ", line + 1)
            and text.find(b"\n", line + 1) == last
        ):
            return Event(raw, text[line + 7 : last], text[7:line])
        return _read(raw, text)


def _read(raw: bytes, text: bytes) -> Event:
    """Parse an event's fields according to the standard."""
    lines: list[bytes] = []
    fields = {b"event": b"", b"id": b""}
    for line in _LINE_END.split(text):
        field, _, value = line.partition(b":")  # a comment's field is empty
        value = value.removeprefix(b" ")
        if field == b"data":
            lines.append(value)
        elif field in fields:
            fields[field] = value
    return Event(raw, b"\n".join(lines) if lines else None, fields[b"event"], fields[b"id"])


def _too_large(most: int) -> ProviderError:
    return ProviderError(
        f"an event of the provider's stream has more than {most:,} bytes",
        where="stream",
        fix="Ask for less at once, or call the provider without streaming.",
    )


def stream_too_large(most: int) -> ProviderError:
    """Return the error for a stream with more bytes than the limit."""
    return ProviderError(
        f"the provider's stream has more than {most:,} bytes",
        where="stream",
        fix="Ask for less in one answer.",
    )


def write_event(data: bytes, name: bytes = b"", event_id: bytes = b"") -> bytes:
    """Return an event as bytes."""
    lines = data.replace(b"\n", b"\ndata: ")
    if not name and not event_id:
        return b"data: " + lines + b"\n\n"
    head = (b"id: " + event_id + b"\n" if event_id else b"") + (
        b"event: " + name + b"\n" if name else b""
    )
    return head + b"data: " + lines + b"\n\n"
