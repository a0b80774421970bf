"""Read Bedrock Converse responses, and observe streams of Amazon's binary frames.

Converse streams pass through unchanged: nothing in them is hidden, joined or translated. A frame
has its length and that of its headers (4 bytes each), a checksum of both, headers, a JSON payload
and a final checksum (smithy.io, "Amazon Event Stream Specification").
"""

from __future__ import annotations

import struct
from typing import Any

from holdfast.wire.responses.shared import load
from holdfast.wire.values import inner, take

_PRELUDE = 12
_CHECKSUM = 4
_STRING = 7
"""Type of a text header; Bedrock writes no others."""
_LARGEST_FRAME = 25_165_824
"""Maximum frame size of the format; a larger length means that the data is not a frame."""
_LARGEST_READ = 262_144
"""Frames with the end and the usage are small; larger ones hold content and are skipped."""


def turn_of(value: dict[str, Any]) -> list[Any]:
    """Return the assistant's turn, as the next request would contain it."""
    message = inner(value, "output", "message")
    return [message] if message else []


def stop_of(value: dict[str, Any]) -> str:
    """Return the stop reason."""
    return take(value, "stopReason")


def usage_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the reported usage."""
    return inner(value, "usage")


class ConverseObserver:
    """Observes a passing stream: its end and its usage."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] = {}
        self.ended = False
        self.failed = False
        """Whether it ended with an exception, or is not a stream of frames."""
        self._rest = bytearray()
        self._unread = 0
        """Remaining bytes of a large frame."""

    def feed(self, chunk: bytes) -> None:
        """Process bytes that go to the client."""
        if self.failed:
            return
        passed = min(self._unread, len(chunk))
        self._unread -= passed
        self._rest += chunk[passed:]
        while len(self._rest) >= _PRELUDE and not self.failed:
            total, headers = struct.unpack_from(">II", self._rest)
            if total > _LARGEST_FRAME or headers + _PRELUDE + _CHECKSUM > total:
                self.failed = True
            elif total > _LARGEST_READ:
                self._unread = max(total - len(self._rest), 0)
                del self._rest[:total]
            elif len(self._rest) < total:
                return
            else:
                start = _PRELUDE + headers
                names = _headers(bytes(self._rest[_PRELUDE:start]))
                self._take(names, bytes(self._rest[start : total - _CHECKSUM]))
                del self._rest[:total]

    def _take(self, headers: dict[str, str], payload: bytes) -> None:
        if headers.get(":message-type") in ("exception", "error"):
            self.failed = True
        elif headers.get(":event-type") == "metadata":  # the last frame of a complete response
            value = load(payload)
            self.usage = usage_of(value) if isinstance(value, dict) else {}
            self.ended = True


def _headers(raw: bytes) -> dict[str, str]:
    """Return the headers of a frame, up to the first that is not text."""
    headers: dict[str, str] = {}
    at = 0
    while at < len(raw):
        name_end = at + 1 + raw[at]
        if len(raw) < name_end + 3 or raw[name_end] != _STRING:
            break
        (length,) = struct.unpack_from(">H", raw, name_end + 1)
        value_end = name_end + 3 + length
        name = raw[at + 1 : name_end].decode("utf-8", "replace")
        headers[name] = raw[name_end + 3 : value_end].decode("utf-8", "replace")
        at = value_end
    return headers
