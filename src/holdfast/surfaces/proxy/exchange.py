"""One request of a client, from its bytes to the last byte of its answer.

exchange: after expansions, before app. Read it from top to bottom: what came in is made to fit,
sent, its hidden calls are answered, and what happened is written down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, NamedTuple

import msgspec

from holdfast.answers import (
    Call,
    Hop,
    Kept,
    Relay,
    join_answers,
    read_answer,
    rejoin,
    total_usage,
    turn_calls,
    with_own_ids,
)
from holdfast.engine import Expanded, Session
from holdfast.errors import (
    BudgetExceededError,
    ContextOptimizationError,
    HoldfastError,
    StoreError,
)
from holdfast.expand.tool import NAME, OTHER_NAME
from holdfast.fitting import FitState, Fitted
from holdfast.fitting.state import one_by_one
from holdfast.surfaces.proxy.expansions import Expansions
from holdfast.surfaces.proxy.final_turn import final_turn
from holdfast.surfaces.proxy.routes import Route
from holdfast.surfaces.proxy.seen import CLIENT_LEFT, Seen
from holdfast.surfaces.proxy.sending import (
    Got,
    Reply,
    UpstreamError,
    ended,
    is_stream,
    received,
)
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.switches import PREFIX, Switches
from holdfast.surfaces.proxy.upstreams import returned_headers
from holdfast.tokens import TokenCount, count
from holdfast.wire import Conversation, read, write
from holdfast.wire.strict import encode, splice

_MOST_KEPT = 200
_HELD_BY_THE_PROVIDER = ("previous_response_id", "conversation", "prompt", "cachedContent")


class Incoming(NamedTuple):
    """A request as the client sent it."""

    route: Route
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    switches: Switches
    seen: Seen


class Outcome(NamedTuple):
    """What the client gets: an answer in one piece, or a stream."""

    status: int
    headers: dict[str, str]
    body: bytes | AsyncIterable[bytes]


class _Prepared(NamedTuple):
    """A request that may go out."""

    asked: Conversation
    """What the client sent."""
    body: bytes
    session: Session
    fitted: Fitted | None = None
    """What goes out; None where nothing is known of it."""
    told: Fitted | None = None
    """What the client is told of: that which went out, or which would have."""
    untouched: int = 0
    """Tokens of the request as the client sent it: edits overlap, so theirs cannot be summed."""
    warnings: tuple[str, ...] = ()
    final: bool = False


class Exchange:
    """The way of one request; used once."""

    def __init__(self, service: Service, incoming: Incoming) -> None:
        self.service = service
        self.incoming = incoming
        self.dialect = incoming.route.dialect
        self.hops: list[Hop] = []
        self.first_id = ""
        self.last_id = ""
        self._started = time.perf_counter()
        self._own_tools: frozenset[str] = frozenset()
        self._limit = incoming.switches.limit or service.settings.request_limit or None
        """Most input tokens, where that is not left to the model."""
        self._sent: Conversation | None = None
        """The latest request that went on from hidden calls."""
        self._said_all = False
        """The client has the end of its stream."""

    async def run(self) -> Outcome:
        """Answer the request; a HoldfastError says why it cannot be."""
        conversation = self.service.recent.read(self.incoming.body, self.dialect)
        self._own_tools = frozenset(tool.name for tool in conversation.tools)
        self.incoming.seen.model = self.incoming.route.model or conversation.model or ""
        prepared = await self._prepare(conversation)
        self.incoming.seen.session = prepared.session.name
        headers = self._headers(prepared)
        calls = AsyncExitStack()
        try:
            reply = await calls.enter_async_context(self.service.send(self.incoming, prepared.body))
            if reply.status < 400 and is_stream(reply):
                headers = returned_headers(reply.headers, changed=True) | headers
                held = calls.pop_all()
                stream = _Pieces(self._stream(prepared, reply, held), held)
                return Outcome(reply.status, headers, stream)
            first = await received(reply, self.service.most_bytes)
        finally:
            await calls.aclose()
        last = await self._whole_answer(prepared, first)
        return last._replace(headers=last.headers | headers)

    # --- before it is sent -----------------------------------------------------------------------

    async def _prepare(self, conversation: Conversation) -> _Prepared:
        """Make the request fit, with what was decided for its session before."""
        engine, switches = self.service.engine, self.incoming.switches
        try:
            if switches.session:
                session = await engine.session(switches.session).load()
            else:
                session = await engine.session_of(conversation)
            return await self._fit(conversation, session)
        except StoreError:
            self.incoming.seen.store_failed = True
            if self.service.settings.on_store_failure == "refuse":
                raise
            session = engine.session(switches.session)
            warning = "the store is unavailable: the request went out as it came"
            return self._as_it_came(conversation, session, warning)

    async def _fit(self, conversation: Conversation, session: Session) -> _Prepared:
        switches = self.incoming.switches
        model = self.incoming.route.model or conversation.model or ""
        how: dict[str, Any] = {
            "dialect": self.dialect,
            "model": model,
            "limit": self._limit,
        }
        if not switches.cite or _wants_several(conversation):
            how["citing"] = None
        if switches.read_only:
            return await self._read_only(conversation, session, how)
        whole = rejoin(conversation, session.kept.get(self.dialect, ()), self._is_hidden)
        final = False
        try:
            fitted = await session.fit(whole, **how)
        except (BudgetExceededError, ContextOptimizationError) as error:
            # Nothing more can be folded: the tools go, and the model is asked to come to an end.
            last = final_turn(
                whole,
                provider=self.incoming.route.family,
                model=model,
                limit=self._limit or getattr(error, "limit", None) or 0,
                debug=self.service.settings.context_debug,
            )
            fitted = await session.fit(last, **how)
            final = True
        # Hidden calls that were brought back are not the client's; else what was read is known.
        came = fitted.state.source if whole is conversation else conversation
        return _Prepared(
            asked=conversation,
            body=self._with_usage(fitted.body),
            session=session,
            fitted=fitted,
            told=fitted,
            untouched=self._count(came, model).tokens,
            warnings=fitted.warnings,
            final=final,
        )

    async def _read_only(
        self, conversation: Conversation, session: Session, how: dict[str, Any]
    ) -> _Prepared:
        """Say what would be done, and do none of it."""
        try:
            told = await session.preview(conversation, **{**how, "citing": None})
        except (BudgetExceededError, ContextOptimizationError):
            warning = "the request does not fit: it went out as it came"
            return self._as_it_came(conversation, session, warning)
        counted = self._count(conversation, how["model"])
        same = one_by_one(0, len(conversation.messages))
        state = FitState(conversation, conversation, same)
        body = self.incoming.body
        fitted = Fitted(body, counted, told.limit, (), state)
        return _Prepared(conversation, body, session, fitted, told, counted.tokens)

    def _as_it_came(self, conversation: Conversation, session: Session, warning: str) -> _Prepared:
        return _Prepared(conversation, self.incoming.body, session, warnings=(warning,))

    def _is_hidden(self, name: str) -> bool:
        return name in (NAME, OTHER_NAME) and name not in self._own_tools

    def _with_usage(self, body: bytes) -> bytes:
        """Ask for the usage of a stream where it has to be asked for."""
        if self.dialect != "openai-chat":
            return body
        asked = msgspec.json.decode(body, type=_Streaming)
        options = asked.stream_options if isinstance(asked.stream_options, dict) else {}
        if asked.stream is not True or options.get("include_usage"):
            return body
        return splice(body, ("stream_options",), encode({**options, **_USAGE}))

    def _headers(self, prepared: _Prepared) -> dict[str, str]:
        """What the proxy tells about what it did."""
        headers = {f"{PREFIX}session": prepared.session.name}
        if (told := prepared.told) is not None:
            headers[f"{PREFIX}tokens"] = str(told.tokens)
            headers[f"{PREFIX}saved"] = str(prepared.untouched - told.tokens)
            headers[f"{PREFIX}edits"] = str(len(told.report))
        if prepared.final:
            headers[f"{PREFIX}final"] = "true"
        if prepared.warnings:
            headers[f"{PREFIX}warning"] = "; ".join(prepared.warnings)
        return headers

    def _count(self, conversation: Conversation, model: str) -> TokenCount:
        return count(conversation, model=model, calibration=self.service.engine.calibration)

    # --- the answer ------------------------------------------------------------------------------

    async def _whole_answer(self, prepared: _Prepared, got: Got) -> Outcome:
        """An answer in one piece, after as many calls as the model's expansions took."""
        bodies: list[bytes] = []
        expansions = self._expansions(prepared)
        sent: bytes | None = prepared.body
        while sent is not None:
            status = got.status
            if status < 400:
                answer = read_answer(got.body, self.dialect)
                status = answer.status
            if status >= 400:  # nothing has gone out: the client may ask for all of it again
                self.hops.clear()
                billed = total_usage(bodies, self.dialect) if bodies else None
                self._note(prepared, status, billed, expansions.used)
                return Outcome(status, got.headers, got.body)
            bodies.append(got.body)
            self._keep_id(answer.id)
            sent = await self._next(sent, answer.turn, answer.calls, expansions)
            if sent is not None:
                async with self.service.send(self.incoming, sent) as reply:
                    got = await received(reply, self.service.most_bytes)
        self._note(prepared, 200, total_usage(bodies, self.dialect), expansions.used)
        joined = join_answers(bodies, self.dialect, self._is_hidden)
        return Outcome(got.status, got.headers, joined)

    async def _stream(
        self, prepared: _Prepared, reply: Reply, calls: AsyncExitStack
    ) -> AsyncGenerator[bytes]:
        """One stream for the client, made of the streams of as many calls as it took."""
        relay = Relay(self.dialect, self._is_hidden, hide_usage=self._hides_usage(prepared))
        expansions = self._expansions(prepared)
        status = reply.status
        try:
            rounds = self._rounds(prepared, relay, expansions, reply, calls)
            async with aclosing(rounds):
                async for out in rounds:
                    yield out
            for out in relay.close():
                yield out
        except HoldfastError as error:
            status = getattr(error, "status", 502)
            for out in relay.error(status, str(error)):
                yield out
        except (asyncio.CancelledError, GeneratorExit):
            status = status if self._said_all else CLIENT_LEFT
            raise
        finally:
            await calls.aclose()
            self._note(prepared, status, relay.usage or None, expansions.used)

    async def _rounds(
        self,
        prepared: _Prepared,
        relay: Relay,
        expansions: Expansions,
        reply: Reply,
        calls: AsyncExitStack,
    ) -> AsyncGenerator[bytes]:
        following: bytes | None = prepared.body
        while following is not None:
            sent = following
            async with aclosing(reply.chunks()) as chunks:
                last: list[bytes] = []
                async for chunk in chunks:
                    last = relay.feed(chunk)
                    if relay.over:
                        break
                    for out in last:
                        yield out
                    last = []
                last += relay.finish()
                following = await self._after(sent, relay, expansions)
                if following is None:  # clients leave, or ask on, as soon as they have the end
                    self._keep(prepared)
                for out in last:
                    yield out
                self._said_all = following is None and not relay.failed
                await ended(chunks)
            await calls.aclose()
            if relay.broken:
                raise UpstreamError("the upstream's answer broke off", fix="Try again.")
            if following is None:
                return
            reply = await calls.enter_async_context(self.service.send(self.incoming, following))
            if reply.status >= 300:
                status = reply.status if reply.status >= 400 else 502
                raise UpstreamError("the upstream refused to go on", status=status)
            for out in relay.continue_with():
                yield out

    async def _after(self, sent: bytes, relay: Relay, expansions: Expansions) -> bytes | None:
        """The request that goes on from a stream; None if it failed, or was the last."""
        if relay.failed:
            return None
        self._keep_id(relay.upstream_id)
        asked = (*relay.hidden_calls, *relay.visible_calls)
        return await self._next(sent, relay.assistant_turn, asked, expansions)

    async def _next(
        self, sent: bytes, turn: tuple[bytes, ...], asked: Sequence[Call], expansions: Expansions
    ) -> bytes | None:
        """Answer the hidden calls of a turn: the request that goes on from it, if one does."""
        hidden = [call for call in asked if self._is_hidden(call.name)]
        if not hidden:
            if self.hops:
                self.hops.append(Hop(turn))
            return None
        before = read(sent, self.dialect, previous=self._sent, limits=self.service.limits)
        alone = len(hidden) == len(asked)
        turn = with_own_ids(turn, before, self._is_hidden)
        hidden = [c for c in turn_calls(turn, self.dialect) if self._is_hidden(c.name)]
        results, self._sent = await expansions.step(before, turn, hidden, alone=alone)
        self.hops.append(Hop(turn, results))
        return write(self._sent) if self._sent is not None else None

    def _expansions(self, prepared: _Prepared) -> Expansions:
        return Expansions(
            self.service.engine, self.service.caps, lambda grown: self._room(prepared, grown)
        )

    def _room(self, prepared: _Prepared, grown: Conversation) -> int:
        """Tokens that a request may still grow by; by the same measure as it was made to fit."""
        if prepared.fitted is None:
            return 0
        made = self._count(grown, prepared.fitted.count.model)
        return prepared.fitted.limit - (made.tokens if self._limit else made.upper)

    def _hides_usage(self, prepared: _Prepared) -> bool:
        """Whether the proxy has asked for usage that the client did not ask for."""
        return prepared.fitted is not None and prepared.body is not prepared.fitted.body

    def _keep_id(self, name: str) -> None:
        self.first_id = self.first_id or name
        self.last_id = name

    # --- afterwards ------------------------------------------------------------------------------

    def _note(
        self, prepared: _Prepared, status: int, usage: object, expanded: Expanded | None = None
    ) -> None:
        """Write down what happened, once the client has its answer."""
        self._keep(prepared)
        if prepared.fitted is None:
            return
        elapsed = (time.perf_counter() - self._started) * 1000
        self.incoming.seen.turn = self.service.later(
            self.service.engine.observe(
                prepared.session,
                prepared.fitted,
                usage,
                status=status,
                asked=prepared.asked,
                untouched=prepared.untouched,
                expanded=expanded,
                milliseconds=elapsed,
                learn=self._teaches(prepared.asked),
            )
        )

    def _teaches(self, asked: Conversation) -> bool:
        """Whether reported usage is of what we counted, and not our own count.

        The offline model counts as we do; what a provider keeps is billed without being sent.
        """
        if self.incoming.route.family not in self.service.upstreams:
            return False
        return not any(asked.rest.get(name) for name in _HELD_BY_THE_PROVIDER)

    def _keep(self, prepared: _Prepared) -> None:
        """Keep the hidden calls for the client's next request, which will be without them."""
        if not self.hops:
            return
        hops, self.hops = tuple(self.hops), []
        kept = Kept(
            hops=hops,
            index=len(prepared.asked.messages),
            seen_id=self.first_id,
            last_id=self.last_id,
        )
        before = prepared.session.kept.get(self.dialect, ())
        prepared.session.kept[self.dialect] = (*before[-_MOST_KEPT:], kept)


def _wants_several(conversation: Conversation) -> bool:
    """Whether several answers are asked for: of those only one could be continued."""
    body = conversation.rest
    config = body.get("generationConfig")
    several = config.get("candidateCount") if isinstance(config, dict) else None
    return any(isinstance(wanted, int) and wanted > 1 for wanted in (body.get("n"), several))


class _Streaming(msgspec.Struct):
    """What is wrong with it, the provider says."""

    stream: Any = False
    stream_options: Any = None


_USAGE = {"include_usage": True}


class _Pieces:
    """A stream that gives its upstream call back even if nobody ever reads from it."""

    def __init__(self, pieces: AsyncGenerator[bytes], calls: AsyncExitStack) -> None:
        self._pieces = pieces
        self._calls = calls

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        """End it, read or not."""
        await self._pieces.aclose()
        await self._calls.aclose()
