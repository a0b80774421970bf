"""Relay a provider's stream to the client, hiding calls and joining several upstream streams.

    relay = Relay("anthropic", hidden)
    relay.feed(chunk) …, relay.finish()    one upstream stream; text is emitted immediately
    relay.hidden_calls and not relay.visible_calls:
        the proxy answers them, calls the provider again with `continuation`, and, once it
        responds, calls relay.continue_with() and feeds: the client sees one stream
    relay.hand(calls)                      or: hidden calls that the client receives as its own
    relay.close()                          emits an end that was held back, if there is one

The relay has no network access and never waits; the proxy drives it.
"""

from __future__ import annotations

import re
from typing import Any

from holdfast.errors import ShapeError
from holdfast.wire.responses.anthropic import AnthropicJoiner
from holdfast.wire.responses.failures import error_event, kind_of_error
from holdfast.wire.responses.gemini import GeminiJoiner
from holdfast.wire.responses.joiner import Joiner
from holdfast.wire.responses.openai_chat import ChatJoiner
from holdfast.wire.responses.openai_responses import ResponsesJoiner
from holdfast.wire.responses.shared import HandedCalls, IsHidden, ModelCall, load
from holdfast.wire.responses.sse import (
    MAX_EVENT_BYTES,
    MAX_STREAM_BYTES,
    Event,
    EventParser,
    stream_too_large,
)
from holdfast.wire.strict import encode

JOINERS: dict[str, type[Joiner]] = {
    "openai-chat": ChatJoiner,
    "openai-responses": ResponsesJoiner,
    "anthropic": AnthropicJoiner,
    "gemini": GeminiJoiner,
}
CONTINUED = frozenset(JOINERS)
"""Dialects in whose responses calls can be hidden, answered and translated. Streams of the others
pass through unchanged (see observers.py), so their models must not be offered internal tools.
"""


class Relay:
    """One client stream, built from one or more consecutive upstream streams.

    Bytes without a hidden call are emitted unchanged. The client receives the context size of the
    latest upstream call (see `context_usage`); `usage` is the billed sum.
    """

    def __init__(
        self,
        dialect: str,
        hidden: IsHidden,
        *,
        hide_usage: bool = False,
        max_event_bytes: int = MAX_EVENT_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
    ) -> None:
        """Create a stream; `hidden` returns whether the client must not see a tool.

        With `hide_usage`, the chunk that only reports usage (OpenAI chat) is read but not emitted,
        for a client that did not request it.
        """
        if dialect not in JOINERS:
            raise ShapeError(
                f"there are no streams in dialect {dialect!r:.40}",
                where="dialect",
                fix=f"Use one of {', '.join(JOINERS)}.",
            )
        self.dialect = dialect
        self._joiner = JOINERS[dialect](hidden, hide_usage=hide_usage)
        self._hidden = hidden
        self._max_event_bytes = max_event_bytes
        self._max_stream_bytes = max_stream_bytes
        self._open_end = False
        """Whether the last event lacks its final empty line."""
        self.broken = False
        """Whether an upstream stream broke off without reporting an error."""
        self._begin()

    def _begin(self) -> None:
        self._parser = EventParser(self._max_event_bytes)
        self._bytes = 0
        self._unread: list[bytes] = []
        """The upstream's bytes after the last complete event."""
        self._half = b""
        """The incomplete event received before the upstream broke off."""

    @property
    def waiting_bytes(self) -> int:
        """Return the number of bytes of an incomplete event, which `feed` may have to parse."""
        return self._parser.waiting_bytes

    @property
    def read_bytes(self) -> int:
        """Return the bytes of the latest upstream stream, which its end must process."""
        return self._bytes

    def feed(self, chunk: bytes) -> list[bytes]:
        """Process upstream bytes; return the client's events that can be emitted now."""
        self._bytes += len(chunk)
        if self._bytes > self._max_stream_bytes:
            raise stream_too_large(self._max_stream_bytes)
        self._unread.append(chunk)
        events = self._parser.feed(chunk)
        incomplete = self._parser.waiting if events else b""
        out: list[bytes] = []
        for event in events:
            self._joiner.take(event, out)
        if events:
            self._unread = [incomplete]
        return out

    def unread(self, chunk: bytes) -> bytes:
        """Return the upstream's bytes that the client has not received, unchanged.

        Use it if `feed` raised for this chunk: emit these bytes and then the rest of the stream
        without the relay. The client may then see a hidden call, but it receives the complete
        response.
        """
        if not self._unread or self._unread[-1] is not chunk:
            self._unread.append(chunk)
        return self.held() + b"".join(self._unread)

    def held(self) -> bytes:
        """Return the events that are held back, unchanged."""
        return b"".join(event.raw for event in self._joiner.held())

    def finish(self) -> list[bytes]:
        """Process the end of the upstream stream; return what was still waiting."""
        out: list[bytes] = []
        last_event = self._parser.finish()
        if last_event is not None and _is_half(last_event):
            self._half = last_event.raw
        elif last_event is not None:
            self._joiner.take(last_event, out)
            self._open_end = bool(out)
        self._joiner.flush(out)
        if not self._joiner.ended:
            self.broken = not self._joiner.failed
            self._joiner.failed = True
        return out

    def continue_with(self) -> list[bytes]:
        """Start the next upstream stream, once the provider has responded.

        The end of the previous stream is dropped; before this call, `close` can still emit it.
        """
        self._joiner.restart()
        self._begin()
        return self._whole([])

    def hand(self, handed: HandedCalls) -> list[bytes]:
        """Return events that hand some hidden calls to the client as calls of its own tools."""
        out: list[bytes] = []
        if handed:
            self._joiner.hand(handed, out)
        return self._whole(out)

    def close(self) -> list[bytes]:
        """Return the end that was held back; empty if it was emitted already.

        A response of which everything was hidden is empty, because our text must not pass as the
        model's. A failed stream gets no end; see `error`.
        """
        out = [self._half] if self._half and not self._joiner.holding else []
        self._half = b""
        if self._joiner.tail:
            self._joiner.release(out)
        return self._whole(out)

    def error(self, status: int, message: str, kind: str = "") -> list[bytes]:
        """Return an error event that ends the stream, in the format of the dialect's clients."""
        self._joiner.tail = []
        self._joiner.failed = True
        self._half = b""
        return self._whole([error_event(self.dialect, status, message, kind)])

    def _whole(self, out: list[bytes]) -> list[bytes]:
        """Complete an event that the upstream left open before emitting others."""
        if self._open_end and out:
            self._open_end = False
            return [b"\n\n", *out]
        return out

    @property
    def hidden_calls(self) -> list[ModelCall]:
        """Return the hidden calls of the latest upstream stream."""
        return [call for call in self._joiner.calls() if self._hidden(call.name)]

    @property
    def visible_calls(self) -> list[ModelCall]:
        """Return the calls of the latest upstream stream that the client sees."""
        return [call for call in self._joiner.calls() if not self._hidden(call.name)]

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Return all calls of the latest upstream stream, hidden ones first."""
        return (*self.hidden_calls, *self.visible_calls)

    @property
    def assistant_turn(self) -> tuple[bytes, ...]:
        """Return the latest assistant turn as the provider needs it back: messages as JSON.

        It is one message, or several items in OpenAI Responses, including thinking, signatures and
        all calls.
        """
        return tuple(encode(message) for message in self._joiner.messages())

    @property
    def usage(self) -> dict[str, Any]:
        """Return the summed usage of all upstream streams, in the dialect's form."""
        return self._joiner.total

    @property
    def usages(self) -> list[dict[str, Any]]:
        """Return the usage of each upstream stream in order; empty if it reported none."""
        return [*self._joiner.usages, self._joiner.usage]

    @property
    def reported(self) -> dict[str, Any]:
        """Return the usage for the client: the latest stream's input, the output of all."""
        return self._joiner.reported

    @property
    def stop_reason(self) -> str:
        """Return the latest stream's stop reason in the dialect's words; empty if unknown."""
        return self._joiner.stop_reason

    @property
    def upstream_id(self) -> str:
        """Return the id of the latest upstream response; the client knows the first one's."""
        return self._joiner.upstream_id

    @property
    def over(self) -> bool:
        """Return whether the latest upstream stream announced its end; it may still be open."""
        return self._joiner.over

    @property
    def has_end(self) -> bool:
        """Return whether the latest upstream stream has a stop reason; usage may follow."""
        return self._joiner.ended

    @property
    def failed(self) -> bool:
        """Return whether the upstream reported an error or broke off."""
        return self._joiner.failed

    @property
    def holding(self) -> bool:
        """Return whether the end of the latest upstream stream is held back."""
        return self._joiner.holding

    @property
    def error_kind(self) -> str:
        """Return the provider's error type reported in the stream; empty if there is none."""
        return kind_of_error(self._joiner.error)

    @property
    def silent(self) -> bool:
        """Return whether the client has received neither text nor a call."""
        return not self._joiner.spoken


def resumed(raw: bytes, blocks: int) -> bytes:
    """Return stream bytes as the rest of a stream of which the client has some blocks.

    Anthropic's clients raise an error at a second message start, and find blocks by number. Clients
    of other dialects accept consecutive streams.
    """
    first, _, behind = raw.partition(b"\n\n")
    if b'"message_start"' in first:
        raw = behind
    return _BLOCK_NUMBER.sub(lambda found: found[1] + b"%d" % (int(found[2]) + blocks), raw)


# Linear: the start of the line is fixed, and a bounded character class follows.
_BLOCK_NUMBER = re.compile(
    rb'^(data: ?\{"type": ?"content_block_[a-z]{4,5}", ?"index": ?)(\d{1,9})', re.MULTILINE
)


def _is_half(event: Event) -> bool:
    """Return whether an event's data is incomplete; a missing empty line alone is harmless."""
    return not event.data or (event.data != b"[DONE]" and load(event.data) is None)
