"""Bedrock Converse's answers: read whole, and watched as a stream of Amazon's binary frames.

converse: after shared. Nothing is hidden in them, joined or translated; streams pass as they come.

A frame is its length and that of its headers (4 bytes each), a checksum of both, the headers, a
payload of JSON and a checksum of it all: smithy.io, "Amazon Event Stream Specification".
"""

from __future__ import annotations

import struct
from typing import Any

from holdfast.wire.responses.shared import load
from holdfast.wire.values import inner, take

_PRELUDE = 12
_CHECKSUM = 4
_STRING = 7
"""The type of a header whose value is text: Bedrock writes no others."""
_LARGEST_FRAME = 25_165_824
"""More than this the format does not allow: what says so is no frame."""
_LARGEST_READ = 262_144
"""Frames with the end and the usage are small; larger ones hold content and are counted past."""


def turn_of(value: dict[str, Any]) -> list[Any]:
    """The assistant's turn, as the next request would hold it."""
    message = inner(value, "output", "message")
    return [message] if message else []


def stop_of(value: dict[str, Any]) -> str:
    """Why the model stopped."""
    return take(value, "stopReason")


def usage_of(value: dict[str, Any]) -> dict[str, Any]:
    """The tokens that were reported."""
    return inner(value, "usage")


class ConverseWatch:
    """Looks at a stream that passes: whether it came to its end, and what it reports."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] = {}
        self.ended = False
        self.failed = False
        """It ended with an exception, or is no stream of frames."""
        self._rest = bytearray()
        self._unread = 0
        """Bytes of a large frame that are still to come."""

    def feed(self, chunk: bytes) -> None:
        """Take bytes that go to the client."""
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
        elif headers.get(":event-type") == "metadata":  # the last frame of a whole answer
            value = load(payload)
            self.usage = usage_of(value) if isinstance(value, dict) else {}
            self.ended = True


def _headers(raw: bytes) -> dict[str, str]:
    """The headers of a frame, up to one that is no text."""
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
