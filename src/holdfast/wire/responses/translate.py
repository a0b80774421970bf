"""Translate a provider's response to the client's dialect: complete, streamed, or an error.

The proxy uses it where client and upstream have different dialects. Content without an equivalent
is skipped and listed in `lost`; invalid input becomes an error in the client's dialect, or raises
`ProviderError`.
"""

from __future__ import annotations

import re

import msgspec

from holdfast.errors import ProviderError, ShapeError
from holdfast.wire.responses.failures import OVERFLOW, error_body, error_event, overflow_message
from holdfast.wire.responses.shared import load
from holdfast.wire.responses.sse import MAX_STREAM_BYTES, Event, EventParser, stream_too_large
from holdfast.wire.responses.translation import (
    READERS,
    WHOLE,
    WRITERS,
    AnswerBegins,
    AnswerEnds,
    AnswerFails,
    BlockBegins,
    BlockEnds,
    BlockGrows,
    Collector,
    Losses,
    Piece,
    UsageReported,
    failure,
)
from holdfast.wire.strict import encode
from holdfast.wire.values import take

BROKEN_OFF = "The provider's stream broke off before its end."
_DONE = b"[DONE]"
# Comments keep a connection open while a model thinks; google-genai parses them as data.
_KEEP_ALIVE = b":\n\n"
_FREE_TEXT = ("openai-chat", "openai-responses")
"""Dialects with calls whose input is free-form text."""


class TranslatedResponse(msgspec.Struct, frozen=True):
    """A complete response in its new dialect."""

    body: bytes
    lost: tuple[str, ...] = ()
    """Short descriptions of what was lost."""
    status: int = 200
    """Differs from 200 if the response was an error sent with status 200."""

    def __repr__(self) -> str:
        return f"<Translated, {len(self.body)} bytes, {len(self.lost)} losses>"


def translate_response(
    body: bytes,
    *,
    speaks: str,
    to: str,
    model: str,
    created: int = 0,
    custom: frozenset[str] = frozenset(),
) -> TranslatedResponse:
    """Translate a complete response from dialect `speaks` to dialect `to`, named after `model`.

    Raise `ProviderError` if it is not a response. `created` is for providers that send no time;
    `custom` are the client's tools with free-form input: see `wire.custom_tools`.
    """
    _check(speaks, to)
    value = load(body)
    if not isinstance(value, dict):
        raise ProviderError(
            "the provider's answer is no JSON object",
            where="answer",
            fix="Check that the upstream speaks this dialect.",
        )
    losses = Losses()
    reader = READERS[speaks](losses)
    collector = Collector(model, created)
    inputs = _Inputs(to, custom)
    for piece in inputs.take([*reader.read(value), *reader.finish()]):
        collector.take(piece)
    failed = collector.failure
    if failed is not None:
        error_bytes = error_body(to, failed.status, _message(failed, to), failed.kind)
        return TranslatedResponse(error_bytes, losses.names, failed.status)
    return TranslatedResponse(encode(WHOLE[to](collector.answer)), losses.names)


def translate_error(status: int, body: bytes, *, speaks: str, to: str) -> bytes:
    """Translate an error body from dialect `speaks` to dialect `to`, keeping its message."""
    _check(speaks, to)
    value = load(body)
    # Gemini's streams wrap the object in a list; gateways send text or HTML.
    value = value[0] if isinstance(value, list) and value else value
    error = value.get("error", value) if isinstance(value, dict) else _words(body)
    failed = failure(error, status)
    return error_body(to, status, _message(failed, to), failed.kind)


def _words(body: bytes) -> str:
    return body[:1000].decode(errors="replace").strip()


# Providers' texts by which frameworks recognise a request that is too long.
_TOO_LONG = re.compile(
    r"prompt is too long|maximum context length|exceeds the maximum number of tokens"
    r"|context_length_exceeded|exceeds the context window|context window exceeds"
)


def _message(failed: AnswerFails, to: str) -> str:
    """Return the provider's message, prefixed with the text of `to` if the request was too long."""
    if failed.kind != OVERFLOW and not _TOO_LONG.search(failed.message[:2000]):
        return failed.message
    return f"{overflow_message(to, None, None)} The provider says: {failed.message}"


def _check(speaks: str, to: str) -> None:
    for dialect in (speaks, to):
        if dialect not in READERS:
            raise ShapeError(
                f"answers in dialect {dialect!r:.40} are not translated",
                where="dialect",
                fix=f"Use one of {', '.join(READERS)}.",
            )


class AnswerTranslator:
    """Translates a stream event by event.

    The result does not depend on how the bytes are split into chunks. The stream ends with the
    provider's last event or with `close`: in the client's dialect, with an error if the provider
    reported one or broke off.
    """

    def __init__(
        self,
        *,
        speaks: str,
        to: str,
        model: str,
        include_usage: bool = True,
        created: int = 0,
        custom: frozenset[str] = frozenset(),
    ) -> None:
        """Start a stream; `include_usage` is the chat client's `stream_options`."""
        _check(speaks, to)
        self._to = to
        self._parser = EventParser()
        self._losses = Losses()
        self._reader = READERS[speaks](self._losses)
        self._writer = WRITERS[to](include_usage=include_usage)
        self._collector = Collector(model, created)
        self._inputs = _Inputs(to, custom)
        self._began = False
        self._bytes = 0
        self.ended = False
        """Whether the client's stream has received its end or an error."""

    @property
    def lost(self) -> tuple[str, ...]:
        """Return short descriptions of what was lost so far."""
        return self._losses.names

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the client's events that are complete with these bytes of the provider."""
        self._bytes += len(chunk)
        if self._bytes > MAX_STREAM_BYTES:
            raise stream_too_large(MAX_STREAM_BYTES)
        out: list[bytes] = []
        for event in self._parser.feed(chunk):
            self._take(event, out)
        return out

    def close(self) -> list[bytes]:
        """Return the end of the stream after the provider's has ended, if it was not sent."""
        out: list[bytes] = []
        last_event = self._parser.finish()
        if last_event is not None:
            self._take(last_event, out)
        self._write(self._reader.finish(), out)
        if not self.ended:
            stopped = self._collector.stopped
            self._write([AnswerEnds() if stopped else AnswerFails(502, BROKEN_OFF)], out)
        return out

    def _take(self, event: Event, out: list[bytes]) -> None:
        if self.ended:
            return
        if event.data is None:
            self._keep_alive(event, out)
            return
        if event.data.strip() == _DONE:
            self._write([*self._reader.finish(), AnswerEnds()], out)
            return
        value = load(event.data)
        if not isinstance(value, dict):
            self._losses.add("an event that is no JSON object")
            return
        self._write(self._reader.read(value), out)

    def _keep_alive(self, event: Event, out: list[bytes]) -> None:
        if self._to != "gemini" and event.raw.lstrip().startswith(b":"):
            out.append(_KEEP_ALIVE)

    def _write(self, pieces: list[Piece], out: list[bytes]) -> None:
        for piece in self._inputs.take(pieces):
            if self.ended:
                return
            self._collector.take(piece)
            if not isinstance(piece, (AnswerBegins, UsageReported, AnswerFails)):
                self._begin(out)
            self._give(piece, out)
        if pieces and not self.ended:
            self._begin(out)

    def _begin(self, out: list[bytes]) -> None:
        if not self._began:
            self._began = True
            out.extend(self._writer.begin(self._collector.head))

    def _give(self, piece: Piece, out: list[bytes]) -> None:
        match piece:
            case BlockBegins():
                out.extend(self._writer.open(piece))
            case BlockGrows():
                out.extend(self._writer.grow(piece.text))
            case BlockEnds():
                out.extend(self._writer.close(self._collector.latest))
            case AnswerEnds():
                self.ended = True
                out.extend(self._writer.end(self._collector.answer))
            case AnswerFails():
                self.ended = True
                message = _message(piece, self._to)
                out.append(error_event(self._to, piece.status, message, piece.kind))


# --- calls with free-form input ------------------------------------------------------------------


class _Inputs:
    """Converts the free-form input of custom calls to JSON and back.

    A dialect without custom tools receives a call with the text as its `input`. A call of the
    client's custom tool, offered to the upstream in that form, is converted back.
    """

    def __init__(self, to: str, custom: frozenset[str]) -> None:
        self._has_custom = to in _FREE_TEXT
        self._custom = custom if self._has_custom else frozenset()
        self._wrapping = False
        self._arguments: list[str] | None = None
        """Arguments of a call that becomes a custom one, parsed when complete."""

    def take(self, pieces: list[Piece]) -> list[Piece]:
        """Return the pieces in the client's dialect."""
        return [new for piece in pieces for new in self._of(piece)]

    def _of(self, piece: Piece) -> list[Piece]:
        match piece:
            case BlockBegins(kind="custom") if not self._has_custom:
                self._wrapping = True
                begun = BlockBegins("call", piece.id, piece.name)
                return [begun, BlockGrows('{"input":"')]
            case BlockBegins(kind="call") if piece.name in self._custom:
                self._arguments = []
                return [BlockBegins("custom", piece.id, piece.name)]
            case BlockGrows() if self._wrapping:
                return [BlockGrows(encode(piece.text).decode()[1:-1])]
            case BlockGrows() if self._arguments is not None:
                self._arguments.append(piece.text)
                return []
            case BlockEnds() if self._wrapping:
                self._wrapping = False
                return [BlockGrows('"}'), piece]
            case BlockEnds() if self._arguments is not None:
                arguments, self._arguments = "".join(self._arguments), None
                # Arguments in another form than requested are still the model's input.
                input_text = take(load(arguments.encode()), "input") or arguments
                return [BlockGrows(input_text), piece]
        return [piece]
