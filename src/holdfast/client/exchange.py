"""One request that fits, from its bytes to the last of its answer; refs are opened on the way.

exchange: after transports, before client. A model that opens refs is answered here and asked to go
on: its calls are hidden from the caller, and brought back into the next request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial, reduce
from typing import Any

import msgspec

from holdfast.client.transports import Transport
from holdfast.engine import ExpansionUsage, Holdfast
from holdfast.errors import ProviderError, WireError
from holdfast.faults import Faults
from holdfast.fitting import Fitted
from holdfast.upstream.expansions import Caps
from holdfast.upstream.hidden_calls import AnswerIds, HiddenCalls, SentRequest
from holdfast.upstream.own_tools import added_tools
from holdfast.wire import Conversation, write
from holdfast.wire.responses import (
    EventParser,
    HiddenTurn,
    Relay,
    add_usage,
    join_responses,
    read_response,
    split,
)
from holdfast.wire.strict import decode

_MOST_BYTES = 67_108_864
"""Of an answer in one piece."""


class ExchangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a request."""

    turn: tuple[bytes, ...]
    """The assistant's turn without hidden calls."""
    body: bytes
    usages: list[dict[str, Any]]
    """The provider's usage report of each call."""
    stop_reason: str

    @property
    def usage(self) -> dict[str, Any]:
        """The sum of the reports."""
        return reduce(add_usage, self.usages)


class ClientExchange:
    """Handles one request. Create one instance per request."""

    def __init__(
        self,
        engine: Holdfast,
        transport: Transport,
        request: SentRequest,
        body: bytes,
        faults: Faults,
    ) -> None:
        """Begin; `body` are the bytes of the request."""
        self._transport = transport
        self._request = request
        self._body = body
        self._faults = faults
        self._ids = AnswerIds()
        own_tools = added_tools(request.asked, request.sent)
        self._calls = HiddenCalls(engine, request, Caps(), faults, own_tools)
        self.hidden: HiddenTurn | None = None
        """The part of the answer that the caller never sees."""

    @property
    def expanded(self) -> ExpansionUsage:
        """The opened parts."""
        return (
            self._calls.expansions.used if self._calls.expansions is not None else ExpansionUsage()
        )

    @property
    def refitted(self) -> Fitted | None:
        """The last sent request, if history was folded to make room."""
        return self._calls.refitted

    # --- in one piece ----------------------------------------------------------------------------

    async def whole(self) -> ExchangeResult:
        """Ask, and continue until the model has opened all the parts that it needs."""
        bodies: list[bytes] = []
        usages: list[dict[str, Any]] = []
        current, body = self._request.sent, self._body
        while True:
            status, body_received = await self._received(body)
            if status >= 300:
                current = self._start_over(status)
                body = write(current)
                continue
            answer = read_response(body_received, self._transport.dialect)
            if answer.error:
                raise refused(answer.status, self._where)
            usages.append(answer.usage)
            bodies.append(body_received)
            self._ids.keep(answer.id)
            turn = partial(tuple, answer.turn)
            following = await self._calls.next_request(current, turn, answer.calls)
            if following is None:
                break
            current, body = following, write(following)
        self._end()
        joined = bodies[-1]
        with self._faults.caught("answer"):
            joined = join_responses(bodies, self._transport.dialect, self._calls.is_hidden)
        response = read_response(joined, self._transport.dialect)
        return ExchangeResult(
            turn=response.turn, body=joined, usages=usages, stop_reason=answer.stop_reason
        )

    @property
    def _where(self) -> str:
        return f"{self._transport.provider}:{self._transport.model}"

    async def _received(self, body: bytes) -> tuple[int, bytes]:
        """Return the status of an answer and its body, which is not read of a refusal."""
        parts, size = [], 0
        async with self._transport.send(body, stream=False) as reply:
            if reply.status >= 300:
                return reply.status, b""
            async with aclosing(reply.chunks()) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > _MOST_BYTES:
                        raise ProviderError(
                            f"the answer has more than {_MOST_BYTES:,} bytes", where=self._where
                        )
                    parts.append(chunk)
        return reply.status, b"".join(parts)

    def _start_over(self, status: int) -> Conversation:
        """Return the first request without our tools, if the upstream refuses the continued one.

        Raises:
            ProviderError: the first request itself is refused.
        """
        again = self._calls.start_over(status)
        if again is None:
            raise refused(status, self._where)
        return again

    # --- as a stream -----------------------------------------------------------------------------

    async def pieces(self) -> AsyncGenerator[str | ExchangeResult]:
        """Yield the text as it comes, and the outcome at the end."""
        dialect = self._transport.dialect
        relay = Relay(dialect, self._calls.is_hidden)
        parser = EventParser()
        out: list[bytes] = []
        current, body = self._request.sent, self._body
        while True:
            async with self._transport.send(body, stream=True) as reply:
                if reply.status >= 300:
                    current = self._start_over(reply.status)
                    body = write(current)
                    continue
                async with aclosing(reply.chunks()) as chunks:
                    async for chunk in chunks:
                        for event in relay.feed(chunk):
                            out.append(event)
                            for text in _texts(parser, event, dialect):
                                yield text
                out += relay.finish()
            if relay.failed:
                raise refused(502, self._where)
            self._ids.keep(relay.upstream_id)
            following = await self._calls.next_request(
                current, lambda: relay.assistant_turn, relay.calls
            )
            if following is None:
                break
            out += relay.continue_with()
            current, body = following, write(following)
        self._end()
        for event in relay.close():
            out.append(event)
            for text in _texts(parser, event, dialect):
                yield text
        yield ExchangeResult(
            turn=split(relay.assistant_turn, dialect, self._calls.is_hidden),
            body=b"".join(out),
            usages=relay.usages,
            stop_reason=relay.stop_reason,
        )

    # --- afterwards ------------------------------------------------------------------------------

    def _end(self) -> None:
        """Keep the hidden calls for the caller's next request, which will be without them."""
        with self._faults.caught("record"):
            self.hidden = self._calls.take_kept(self._ids)
            if self.hidden is not None:
                self._request.session.hide(self.hidden)
        with self._faults.caught("record"):
            if self._calls.expansions is not None:
                self._calls.expansions.end()


def _texts(parser: EventParser, event: bytes, dialect: str) -> Iterator[str]:
    """Return the pieces of text in the bytes for a client."""
    for each in parser.feed(event):
        try:
            value = decode(each.data or b"")
        except (WireError, msgspec.MsgspecError):  # such as [DONE]
            continue
        yield from filter(None, _text_of(value, dialect))


def _text_of(value: Any, dialect: str) -> list[str]:
    try:
        match dialect:
            case "openai-chat":
                return [choice["delta"].get("content") or "" for choice in value["choices"]]
            case "anthropic":
                delta = value["delta"]
                return [delta["text"]] if delta.get("type") == "text_delta" else []
            case "gemini":
                parts = value["candidates"][0]["content"]["parts"]
                return [part.get("text", "") for part in parts if not part.get("thought")]
            case _:
                is_text = value["type"] == "response.output_text.delta"
                return [value["delta"]] if is_text else []
    except (LookupError, TypeError, AttributeError):
        return []


def refused(status: int, where: str) -> ProviderError:
    """Return the error for a provider's refusal, without its body, which may quote the request."""
    fixes = {
        401: "Check the key.",
        403: "Check the key.",
        404: "Check the name of the model, and the address.",
        429: "Wait, then ask again.",
    }
    fix = fixes.get(status, "Try again." if status >= 500 else "Ask it by hand to see why.")
    return ProviderError(f"the provider answered with status {status}", where=where, fix=fix)
