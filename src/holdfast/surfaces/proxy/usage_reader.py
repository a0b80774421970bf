"""Reads usage and object ids from an upstream's answer while it passes, in any dialect.

usage_reader: after provider_objects, before upstream_calls. Only events that may hold a usage or an
id are parsed, and for usage only the fields that are looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.engine.bill import read_report
from holdfast.engine.vendor_cache import CallTokens
from holdfast.errors import ProviderError
from holdfast.surfaces.proxy.provider_objects import created_names
from holdfast.wire.responses import EventParser, observe_stream

_MOST_BYTES = 33_554_432
"""Bytes of an answer in one piece that are kept to be read."""
_FINAL = frozenset(
    {"message_delta", "message-end", "response.completed", "response.incomplete", "response.failed"}
)
"""Events whose usage is the last one; other dialects do not name their events."""
_NAMING = (b'"response.', b'"container"', b'"message_start"')
"""Events that name objects are marked so."""
_HEADERS = {
    "x-amzn-bedrock-input-token-count": "input_tokens",
    "x-amzn-bedrock-output-token-count": "output_tokens",
}
"""Where Bedrock reports the usage of `invoke`, whose bodies are those of the models' vendors."""


class _Event(msgspec.Struct):
    """An answer, or an event of one: the members that may hold a usage."""

    type: Any = None
    usage: Any = None
    usageMetadata: Any = None  # noqa: N815 - Gemini's name
    meta: Any = None
    message: msgspec.Raw = msgspec.Raw()
    delta: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()


class _Inner(msgspec.Struct):
    usage: Any = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_array = msgspec.json.Decoder(list[_Event]).decode
_decode_inner = msgspec.json.Decoder(_Inner).decode
_decode = msgspec.json.Decoder().decode
_UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)


class UsageReader:
    """The usage in one response."""

    def __init__(
        self, status: int, headers: Mapping[str, str], dialect: str = "", *, names: bool = False
    ) -> None:
        """Begin; with `names`, object ids are read too."""
        by_name = {name.lower(): value for name, value in headers.items()}
        kind = by_name.get("content-type", "").lower()
        self.is_stream = "event-stream" in kind or "eventstream" in kind
        self.is_final = False
        """Whether the provider has reported all it will."""
        self.received = 0
        """Bytes of the answer so far."""
        self._usage: dict[str, Any] = {}
        self._names: set[str] = set()
        self._reads_names = names
        self._is_good = status < 400
        self._parser = EventParser() if self.is_stream else None
        # Bedrock frames its events in binary, which the watch of its dialect reads.
        self._watch = observe_stream(dialect) if self.is_stream and dialect == "converse" else None
        self._body = bytearray()
        for header, name in _HEADERS.items():
            count = by_name.get(header, "")
            if count.isascii() and count.isdigit():
                self._usage[name] = int(count[:12])

    @property
    def tokens(self) -> CallTokens | None:
        """Return the provider's usage; None if it has reported no input."""
        return read_report(self._usage)

    def take_names(self) -> set[str]:
        """Return the objects that were named since the last call."""
        names, self._names = self._names, set()
        return names

    def feed(self, chunk: bytes) -> None:
        """Read a part of the answer."""
        self.received += len(chunk)
        if not self._is_good:
            return
        if self._watch is not None:
            self._watch.feed(chunk)
            self._add(self._watch.usage)
            self.is_final = self._watch.ended
        elif self._parser is not None:
            try:
                events = self._parser.feed(chunk)
            except ProviderError:  # an event without an end: the relay of the stream reports it
                self._is_good = False
                return
            for event in events:
                if event.data:
                    self._read_event(event.data)
        elif len(self._body) + len(chunk) <= _MOST_BYTES:
            self._body += chunk

    def finish(self) -> None:
        """Read an answer that came in one piece, after its last byte."""
        body, self._body = bytes(self._body), bytearray()
        try:
            if not body:
                return
            events = _decode_array(body) if body.lstrip()[:1] == b"[" else [_decode_event(body)]
            for event in events:
                self._read(event)
            self.is_final = self.tokens is not None
            if self._reads_names:
                self._names |= created_names(_decode(body))
        except _UNREADABLE:
            return

    def _read_event(self, data: bytes) -> None:
        try:
            if self._reads_names and any(mark in data for mark in _NAMING):
                self._names |= created_names(_decode(data))
            if b"sage" not in data:  # neither `usage` nor `usageMetadata`
                return
            event = _decode_event(data)
            self._read(event)
        except _UNREADABLE:
            return
        is_last = not isinstance(event.type, str) or event.type in _FINAL
        # Gemini reports the usage so far in every event.
        goes_on = event.usageMetadata is not None and b'"finishReason"' not in data
        self.is_final = self.is_final or (is_last and not goes_on and self.tokens is not None)

    def _read(self, event: _Event) -> None:
        for usage in (event.usage, event.usageMetadata, _billed_units(event.meta)):
            self._add(usage)
        for part in (event.message, event.delta, event.response):
            if bytes(part).lstrip()[:1] == b"{":
                self._add(_decode_inner(part).usage)

    def _add(self, report: object) -> None:
        if isinstance(report, dict):
            self._usage = _largest(self._usage, report)


def _largest(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the largest of each count: providers repeat them as they grow."""
    merged = dict(one)
    for key, value in other.items():
        previous = merged.get(key)
        if isinstance(previous, dict) and isinstance(value, dict):
            merged[key] = _largest(previous, value)
        elif isinstance(previous, int | float) and isinstance(value, int | float):
            merged[key] = max(previous, value)
        elif value is not None:
            merged[key] = value
    return merged


def _billed_units(meta: object) -> object:
    """Return what Cohere bills for embeddings."""
    return meta.get("billed_units") if isinstance(meta, dict) else None
