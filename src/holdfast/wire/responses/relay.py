"""A provider's stream on its way to the client, in any dialect: bytes in, bytes out.

relay: after the dialects' joiners; the proxy drives it. It has no network and never waits.

    relay = Relay("anthropic", hidden)
    relay.feed(chunk) …, relay.finish()      one upstream stream; text goes through at once
    relay.hidden_calls and not relay.visible_calls:
        the proxy answers them, calls the provider again with `continuation`, and, once that
        answers, relay.continue_with() and feeds on: the client sees one stream
    relay.hand(calls)                        or: hidden calls that the client gets as its own
    relay.close()                            the end that was held back, if there is one
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
from holdfast.wire.responses.shared import Call, Handed, Hidden, load
from holdfast.wire.responses.sse import (
    MAX_EVENT_BYTES,
    MAX_STREAM_BYTES,
    Event,
    EventParser,
    endless,
)
from holdfast.wire.strict import encode

JOINERS: dict[str, type[Joiner]] = {
    "openai-chat": ChatJoiner,
    "openai-responses": ResponsesJoiner,
    "anthropic": AnthropicJoiner,
    "gemini": GeminiJoiner,
}
CONTINUED = frozenset(JOINERS)
"""Dialects in whose answers calls can be hidden and answered, and which are translated; those of
the others pass as they come (see watching.py), so a model may be offered nothing of ours there."""


class Relay:
    """One client stream, made of one upstream stream or of several that follow each other.

    What came without a hidden call leaves byte for byte as it came. The client is told the size of
    the latest upstream call's context (see `context_usage`); `usage` is the sum, as it was billed.
    """

    def __init__(
        self,
        dialect: str,
        hidden: Hidden,
        *,
        hide_usage: bool = False,
        max_event_bytes: int = MAX_EVENT_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
    ) -> None:
        """Begin a stream; `hidden` says of a tool's name whether the client must not see it.

        With `hide_usage` the chunk that only reports usage (OpenAI chat) is read and not passed
        on: for a client that did not ask for it.
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
        """The last event lacks the empty line that ends it."""
        self.broken = False
        """An upstream stream ended before its end, without a word about it."""
        self._begin()

    def _begin(self) -> None:
        self._parser = EventParser(self._max_event_bytes)
        self._bytes = 0
        self._unread: list[bytes] = []
        """The upstream's bytes behind the last complete event that was read."""
        self._half = b""
        """What came of an event before the upstream broke off."""

    @property
    def waiting_bytes(self) -> int:
        """How much has come of an event that is not complete: what `feed` may have to read."""
        return self._parser.waiting_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of the latest upstream stream: how much there is to go through at its end."""
        return self._bytes

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes of the upstream; give what goes to the client now, event by event."""
        self._bytes += len(chunk)
        if self._bytes > self._max_stream_bytes:
            raise endless(self._max_stream_bytes)
        self._unread.append(chunk)
        events = self._parser.feed(chunk)
        rest = self._parser.waiting if events else b""
        out: list[bytes] = []
        for event in events:
            self._joiner.take(event, out)
        if events:
            self._unread = [rest]
        return out

    def unread(self, chunk: bytes) -> bytes:
        """Return the upstream's bytes that the client has not been given, as they came.

        For a caller whose `feed` of this chunk raised, however far it came: it passes these bytes
        on, and then the rest of the stream without this relay. The client may see a hidden call
        then, but it gets the whole answer.
        """
        if not self._unread or self._unread[-1] is not chunk:
            self._unread.append(chunk)
        return self.held() + b"".join(self._unread)

    def held(self) -> bytes:
        """Return the events that are held back, as they came."""
        return b"".join(event.raw for event in self._joiner.held())

    def finish(self) -> list[bytes]:
        """Tell that the upstream stream has ended; give what was still on its way."""
        out: list[bytes] = []
        rest = self._parser.finish()
        if rest is not None and _is_half(rest):
            self._half = rest.raw
        elif rest is not None:
            self._joiner.take(rest, out)
            self._open_end = bool(out)
        self._joiner.flush(out)
        if not self._joiner.ended:
            self.broken = not self._joiner.failed
            self._joiner.failed = True
        return out

    def continue_with(self) -> list[bytes]:
        """Begin the next upstream stream, once the provider has answered it.

        The end of the one before is dropped: until this is called, `close` can still give it.
        """
        self._joiner.restart()
        self._begin()
        return self._whole([])

    def hand(self, handed: Handed) -> list[bytes]:
        """Give the client some hidden calls of the latest stream, as calls of its own tools."""
        out: list[bytes] = []
        if handed:
            self._joiner.hand(handed, out)
        return self._whole(out)

    def close(self) -> list[bytes]:
        """Give the end that was held back; nothing if it went through already.

        An answer of which all was hidden is empty: words of ours are never the model's. A stream
        that failed gets no end: see `error`.
        """
        out = [self._half] if self._half and not self._joiner.holding else []
        self._half = b""
        if self._joiner.tail:
            self._joiner.release(out)
        return self._whole(out)

    def error(self, status: int, message: str, kind: str = "") -> list[bytes]:
        """End the stream with an error, in the form that the dialect's clients raise."""
        self._joiner.tail = []
        self._joiner.failed = True
        self._half = b""
        return self._whole([error_event(self.dialect, status, message, kind)])

    def _whole(self, out: list[bytes]) -> list[bytes]:
        """Close an event that the upstream left open before others follow."""
        if self._open_end and out:
            self._open_end = False
            return [b"\n\n", *out]
        return out

    @property
    def hidden_calls(self) -> list[Call]:
        """The hidden calls of the latest upstream stream."""
        return [call for call in self._joiner.calls() if self._hidden(call.name)]

    @property
    def visible_calls(self) -> list[Call]:
        """The calls of the latest upstream stream that the client sees."""
        return [call for call in self._joiner.calls() if not self._hidden(call.name)]

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls of the latest upstream stream, the hidden ones first."""
        return (*self.hidden_calls, *self.visible_calls)

    @property
    def assistant_turn(self) -> tuple[bytes, ...]:
        """The latest assistant turn as the provider needs it back: messages of a request as JSON.

        One message, or in OpenAI's Responses one item after the other. Thinking, signatures and
        all calls are in it.
        """
        return tuple(encode(message) for message in self._joiner.messages())

    @property
    def usage(self) -> dict[str, Any]:
        """What all upstream streams reported, summed, in the dialect's own form."""
        return self._joiner.total

    @property
    def usages(self) -> list[dict[str, Any]]:
        """What each upstream stream reported, in order; empty where it reported nothing."""
        return [*self._joiner.usages, self._joiner.usage]

    @property
    def reported(self) -> dict[str, Any]:
        """What the client is told of it: the latest stream's input, the output of all."""
        return self._joiner.reported

    @property
    def stop_reason(self) -> str:
        """Why the latest upstream stream stopped, in the dialect's words; empty if unknown."""
        return self._joiner.stop_reason

    @property
    def upstream_id(self) -> str:
        """The id of the latest upstream answer; the client knows the first one's."""
        return self._joiner.upstream_id

    @property
    def over(self) -> bool:
        """Whether the latest upstream stream has said its last word; it may be open still."""
        return self._joiner.over

    @property
    def has_end(self) -> bool:
        """Whether the latest upstream stream has given its stop reason; usage may follow."""
        return self._joiner.ended

    @property
    def failed(self) -> bool:
        """Whether the upstream reported an error, or broke off before its end."""
        return self._joiner.failed

    @property
    def holding(self) -> bool:
        """Whether the end of the latest upstream stream is held back: it may go on."""
        return self._joiner.holding

    @property
    def error_kind(self) -> str:
        """The provider's word for an error that it reported in the stream; else nothing."""
        return kind_of_error(self._joiner.error)

    @property
    def silent(self) -> bool:
        """Whether the client has been given neither text nor a call so far."""
        return not self._joiner.spoken


def resumed(raw: bytes, blocks: int) -> bytes:
    """Return bytes of a stream as the rest of another one, of which a client has so many blocks.

    Anthropic's clients raise where a second message starts, and find a block by its number. Other
    dialects' clients take one stream behind the other.
    """
    first, _, behind = raw.partition(b"\n\n")
    if b'"message_start"' in first:
        raw = behind
    return _BLOCK_NUMBER.sub(lambda found: found[1] + b"%d" % (int(found[2]) + blocks), raw)


# Linear: the line's beginning is fixed, and a class with a bound follows.
_BLOCK_NUMBER = re.compile(
    rb'^(data: ?\{"type": ?"content_block_[a-z]{4,5}", ?"index": ?)(\d{1,9})', re.MULTILINE
)


def _is_half(event: Event) -> bool:
    """Whether an event was cut off in its data; a missing empty line alone does no harm."""
    return not event.data or (event.data != b"[DONE]" and load(event.data) is None)
