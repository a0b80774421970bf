"""One request that fits, from its bytes to the last of its answer; refs are opened on the way.

exchange: after transports, before client. A model that opens refs is answered here and asked to go
on: its calls are hidden from the caller, and brought back into the next request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import reduce
from typing import Any

import msgspec

from holdfast.calling.expansions import Caps, Expansions
from holdfast.calling.own_tools import added_tools
from holdfast.client.transports import Transport
from holdfast.engine import Expanded, Holdfast, Session
from holdfast.errors import ProviderError, WireError
from holdfast.faults import Faults
from holdfast.fitting import Fitted
from holdfast.tokens import count
from holdfast.wire import Conversation, write
from holdfast.wire.answers import (
    Call,
    EventParser,
    Hop,
    Kept,
    Relay,
    add_usage,
    join_answers,
    read_answer,
    split,
    turn_calls,
    with_own_ids,
)
from holdfast.wire.places import head_of
from holdfast.wire.strict import decode

_MOST_BYTES = 67_108_864
"""Of an answer in one piece."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a request."""

    turn: tuple[bytes, ...]
    """The assistant's turn without hidden calls."""
    body: bytes
    usages: list[dict[str, Any]]
    """What the provider reported of each call."""
    stop_reason: str

    @property
    def usage(self) -> dict[str, Any]:
        """The sum of what was reported."""
        return reduce(add_usage, self.usages)


class Exchange:
    """Handles one request. Create one instance per request."""

    def __init__(  # noqa: PLR0913 - what it needs of one request, once
        self,
        engine: Holdfast,
        session: Session,
        transport: Transport,
        fitted: Fitted,
        caps: Caps,
        *,
        bounded: bool,
        faults: Faults,
    ) -> None:
        """Begin; `bounded` says that the limit is the caller's, which the count itself must keep.

        Otherwise it is the model's, and the upper bound of the count must.
        """
        self._session = session
        self._transport = transport
        self._fitted = fitted
        self._bounded = bounded
        self._faults = faults
        self._failures = 0
        self._hops: list[Hop] = []
        self._first_id = self._last_id = ""
        self._own_tools = added_tools(fitted.state.asked, fitted.state.sent)
        self._opening = Expansions(
            engine, caps, self._room, self._is_hidden, faults=faults, session=session.name
        )
        self.hidden: Kept | None = None
        """What of the answer the caller never sees."""

    @property
    def expanded(self) -> Expanded:
        """What was opened."""
        return self._opening.used

    def _is_hidden(self, name: str) -> bool:
        return name in self._own_tools

    def _room(self, grown: Conversation) -> int:
        counted = count(grown, model=self._fitted.count.model or None)
        return self._fitted.limit - (counted.tokens if self._bounded else counted.upper)

    # --- in one piece ----------------------------------------------------------------------------

    async def whole(self) -> Answered:
        """Ask, and go on until the model has opened all that it wants."""
        bodies: list[bytes] = []
        usages: list[dict[str, Any]] = []
        following: Conversation | None = self._fitted.state.sent
        body = self._fitted.body
        while True:
            status, got = await self._received(body)
            if status >= 300:
                following = self._start_over(status)
                body = write(following)
                continue
            answer = read_answer(got, self._transport.dialect)
            if answer.error:
                raise refused(answer.status, self._where)
            usages.append(answer.usage)
            bodies.append(got)
            self._keep_id(answer.id)
            following = await self._next(following, answer.turn, answer.calls)
            if following is None:
                break
            body = write(following)
        self._hide()
        joined = bodies[-1]
        with self._faults.caught("answer"):
            joined = join_answers(bodies, self._transport.dialect, self._is_hidden)
        shown = read_answer(joined, self._transport.dialect)
        return Answered(turn=shown.turn, body=joined, usages=usages, stop_reason=answer.stop_reason)

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
        """Return the first request without our tools, where one that goes on from it is refused.

        Raises:
            ProviderError: the first request itself is refused.
        """
        again = self._opening.start_over(status)
        if again is None:
            raise refused(status, self._where)
        self._hops.clear()
        return again

    # --- as a stream -----------------------------------------------------------------------------

    async def pieces(self) -> AsyncGenerator[str | Answered]:
        """The text as it comes, and in the end what came of it all."""
        dialect = self._transport.dialect
        relay = Relay(dialect, self._is_hidden)
        shown = EventParser()
        out: list[bytes] = []
        sent: Conversation = self._fitted.state.sent
        body = self._fitted.body
        while True:
            async with self._transport.send(body, stream=True) as reply:
                if reply.status >= 300:
                    sent = self._start_over(reply.status)
                    body = write(sent)
                    continue
                async with aclosing(reply.chunks()) as chunks:
                    async for chunk in chunks:
                        for event in relay.feed(chunk):
                            out.append(event)
                            for text in _texts(shown, event, dialect):
                                yield text
                out += relay.finish()
            if relay.failed:
                raise refused(502, self._where)
            self._keep_id(relay.upstream_id)
            calls = (*relay.hidden_calls, *relay.visible_calls)
            following = await self._next(sent, relay.assistant_turn, calls)
            if following is None:
                break
            out += relay.continue_with()
            sent, body = following, write(following)
        self._hide()
        for event in relay.close():
            out.append(event)
            for text in _texts(shown, event, dialect):
                yield text
        yield Answered(
            turn=split(relay.assistant_turn, dialect, self._is_hidden),
            body=b"".join(out),
            usages=relay.usages,
            stop_reason=relay.stop_reason,
        )

    # --- hidden calls ----------------------------------------------------------------------------

    async def _next(
        self, sent: Conversation | None, turn: tuple[bytes, ...], asked: Sequence[Call]
    ) -> Conversation | None:
        """Answer the hidden calls of a turn; return the request that goes on, None if none does.

        After an internal error the model is asked again without our tools, unless the caller has
        calls of its own to answer.
        """
        with self._faults.caught("hidden calls"):
            return await self._answered(sent, turn, asked)
        self._failures += 1
        if self._failures > 1 or not all(self._is_hidden(call.name) for call in asked):
            return None
        self._hops.clear()
        return self._fitted.state.asked

    async def _answered(
        self, sent: Conversation | None, turn: tuple[bytes, ...], asked: Sequence[Call]
    ) -> Conversation | None:
        hidden = [call for call in asked if self._is_hidden(call.name)]
        if not hidden or sent is None:
            return self._last_turn(turn)
        own = with_own_ids(turn, sent, self._own_tools.name_of)
        hidden = [c for c in turn_calls(own, self._transport.dialect) if self._is_hidden(c.name)]
        alone = len(hidden) == len(asked)
        step = await self._opening.step(sent, own, hidden, alone=alone)
        if self._opening.is_asked_again:
            self._hops.clear()
        elif (hop := self._opening.hop_of(sent, step, hidden, {})).turn:
            self._hops.append(hop)
        return step.following

    def _last_turn(self, turn: tuple[bytes, ...]) -> Conversation | None:
        """Keep the turn that ends an answer; return the first request again if it is empty."""
        if not (self._hops or self._opening.is_asked_again):
            return None
        again = self._opening.ask_again(turn)
        if self._opening.is_asked_again:
            self._hops.clear()
        elif not self._opening.is_silent(turn):
            self._hops.append(Hop(turn))
        return again

    def _keep_id(self, id_: str) -> None:
        self._first_id = self._first_id or id_
        self._last_id = id_ or self._last_id

    def _hide(self) -> None:
        """Keep the hidden calls for the caller's next request, which will be without them."""
        if not self._hops:
            return
        asked = self._fitted.state.asked
        with self._faults.caught("record"):
            self.hidden = Kept(
                hops=tuple(self._hops),
                index=len(asked.messages),
                place=head_of(asked),
                seen_id=self._first_id,
                last_id=self._last_id,
                dialect=self._transport.dialect,
            )
            self._session.hide(self.hidden)


def _texts(parser: EventParser, event: bytes, dialect: str) -> Iterator[str]:
    """The pieces of text in what goes to a client."""
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
    """A provider's refusal; its body may quote the request, so it is not told."""
    fixes = {
        401: "Check the key.",
        403: "Check the key.",
        404: "Check the name of the model, and the address.",
        429: "Wait, then ask again.",
    }
    fix = fixes.get(status, "Try again." if status >= 500 else "Ask it by hand to see why.")
    return ProviderError(f"the provider answered with status {status}", where=where, fix=fix)
