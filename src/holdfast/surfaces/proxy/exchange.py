"""One request of a client, from its bytes to the last byte of its answer.

exchange: after preparing, before app. Read it from top to bottom: what came in is made to fit,
sent, its hidden calls are answered, and what happened is written down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial, reduce
from typing import Any

import msgspec

from holdfast.answers import Answer
from holdfast.calling.expansions import Expansions
from holdfast.calling.finding import ToolFinder
from holdfast.calling.network import BrokenOffError, Reply, UpstreamError, ended, is_stream
from holdfast.engine import Holdfast, ReusedAnswer, ToolUse
from holdfast.errors import HoldfastError, StoreError
from holdfast.expand.finding import FINDERS, OUR_TOOLS
from holdfast.fitting import Fitted
from holdfast.fitting.deferring import deferred_tools
from holdfast.store import Turn
from holdfast.surfaces.proxy.delivery import Outcome, Pieces, account
from holdfast.surfaces.proxy.dispatch import HELD_BY_PROVIDERS, Dispatch
from holdfast.surfaces.proxy.incoming import Incoming
from holdfast.surfaces.proxy.preparing import SIGNED, Prepared, Preparing
from holdfast.surfaces.proxy.remembering import Ended, Remembering, edit_of
from holdfast.surfaces.proxy.seen import CLIENT_LEFT
from holdfast.surfaces.proxy.sending import Got, received
from holdfast.surfaces.proxy.service import READING, Service
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.surfaces.proxy.upstreams import returned_headers
from holdfast.wire import Conversation, write
from holdfast.wire.answers import (
    CONTINUED,
    Call,
    Handed,
    Hop,
    Kept,
    Relay,
    add_usage,
    error_kind,
    join_answers,
    read_answer,
    turn_calls,
    watch,
    with_own_ids,
)
from holdfast.wire.chained import names_of_answer
from holdfast.wire.places import head_of
from holdfast.wire.thinking import unbound, unbound_turn
from holdfast.wire.tools import offered_tools

_RECORD_SECONDS = 2.0
"""How long the end of an answer waits for its turn to be written down. Whoever has an answer can
have its request rebuilt, even if the proxy is killed in the next moment; but a store that hangs
must not hold answers back."""
_LARGE_EVENT = 250_000
"""Bytes of one event that are not read on the event loop: two milliseconds."""


class Handling:
    """The way of one request; used once."""

    def __init__(self, service: Service, incoming: Incoming) -> None:
        self.service = service
        self.incoming = incoming
        self.dialect = incoming.route.dialect
        self.hops: list[Hop] = []
        self.first_id = ""
        self.last_id = ""
        self._started = time.perf_counter()
        self._offered: frozenset[str] = frozenset()
        """Tools that went out and are not the client's own."""
        self._engine: Holdfast
        """That of the tenant who asks."""
        self._dispatch: Dispatch
        """Whom the request goes to."""
        self._preparing: Preparing
        self._hidden_answer: Kept | None = None
        """What of the answer the client never saw."""
        self._refitted: Fitted | None = None
        """What went out in the end, where history was folded to make room for an expansion."""
        self._expansions: Expansions | None = None
        """What the model opens, once it does."""
        self._finder: ToolFinder
        """The tools that were set aside, once one is looked for."""
        self._handed: Handed = {}
        """Calls of the answer that the client gets as calls of its own tools."""
        self._tool_use = ToolUse()
        self._account: dict[str, str] = {}
        """What is told of an answer that took several calls."""
        self._error = ""
        """The provider's word for a failure."""
        self._linked = False
        self._said_all = False
        """The client has the end of its stream."""
        self._remembering: Remembering

    async def run(self) -> Outcome:
        """Answer the request; a HoldfastError says why it cannot be."""
        engine = self._engine = await self.service.tenants.of(self.incoming)
        tenant = self.incoming.seen.tenant = engine.scope.workspace
        conversation = await self.service.read(self.incoming.body, self.dialect, tenant)
        model = self.incoming.route.model or conversation.model or ""
        self.incoming.seen.model = model
        self._dispatch = Dispatch(self.service, self.incoming, model)
        self._preparing = Preparing(self.service, self.incoming, engine, self._dispatch)
        self._remembering = Remembering(self.service, self.incoming, engine)
        try:
            answer = await self._remembering.look(conversation)
            if answer is not None:
                with suppress(StoreError):  # then it is sent, as the settings say
                    return await self._from_memory(conversation, answer)
            return await self._asked(conversation)
        except BaseException:
            self._remembering.end()  # whoever waits for this one's answer waits in vain
            raise

    async def _from_memory(self, conversation: Conversation, answer: Answer) -> Outcome:
        """Give an answer again; nothing goes out, and that is written down."""
        prepared = await self._preparing.unsent(conversation, edit_of(answer))
        self.incoming.seen.session = prepared.session.name
        self.service.telemetry.metrics.answered(answer.tier)
        self.first_id = answer.given.id
        reused = ReusedAnswer(answer.given.output_tokens, answer.age_seconds)
        self._note(prepared, 200, [], remembered=reused)
        await self._written()
        headers, body = self._remembering.replay(answer)
        return Outcome(200, prepared.headers | headers, body)

    async def _asked(self, conversation: Conversation) -> Outcome:
        """Send the request, and give the answer that comes."""
        nearly_used = await self._allowed()
        prepared = await self._preparing.prepare(conversation)
        warnings = prepared.warnings + self._remembering.warnings + nearly_used
        prepared = prepared._replace(warnings=warnings)
        if self._remembering.headers:
            self.service.telemetry.metrics.answered("miss")
        self.incoming.seen.session = prepared.session.name
        self._dispatch.leave_out(partial(self._preparing.takes, prepared))
        self._offered = await self._offered_in(prepared)
        headers = prepared.headers | self._remembering.headers
        if self.service.peers is not None:
            headers[f"{PREFIX}worker"] = str(self.service.peers.number)
        calls = AsyncExitStack()
        try:
            sending = self._dispatch.send(prepared.sent, prepared.body)
            reply = await calls.enter_async_context(sending)
            headers |= self._dispatch.headers
            if reply.status < 400 and is_stream(reply):
                headers = returned_headers(reply.headers, changed=True) | headers
                held = calls.pop_all()
                pieces = self._stream if self.dialect in CONTINUED else self._passed
                stream = Pieces(pieces(prepared, reply, held), held, self._remembering)
                return Outcome(reply.status, headers, stream)
            first = await received(reply, self.service.most_bytes)
        finally:
            await calls.aclose()
        last = await self._whole_answer(prepared, first)
        return last._replace(headers=last.headers | headers | self._account)

    async def _allowed(self) -> tuple[str, ...]:
        """Raise if who asks may ask no more today; a store that is gone keeps nobody back."""
        try:
            warning = await self.service.allowances.check(self._engine)
        except StoreError as error:
            self.incoming.seen.store_failed_with(error)
            return ()
        return (warning,) if warning else ()

    async def _offered_in(self, prepared: Prepared) -> frozenset[str]:
        """The tools that went out and are not the client's own; it may have 10,000 of those."""
        asked, sent = prepared.asked, prepared.sent
        if asked is sent:
            return frozenset()
        size = len(sent.frame.head) + len(sent.frame.tail)
        work = partial(_added_tools, asked, sent)
        return await self.service.engine.workers.off_loop(size // READING, work)

    # --- the answer ------------------------------------------------------------------------------

    async def _whole_answer(self, prepared: Prepared, got: Got) -> Outcome:
        """An answer in one piece, after as many calls as the model's expansions took."""
        bodies: list[bytes] = []
        usages: list[dict[str, Any]] = []
        sent: Conversation | None = prepared.sent
        while sent is not None:
            status = got.status
            if status < 400:
                answer = read_answer(got.body, self.dialect)
                status = answer.status
            if status >= 400:  # nothing has gone out: the client may ask for all of it again
                self.hops.clear()
                self._error = error_kind(got.body, got.headers)
                self._note(prepared, status, usages)
                await self._written()
                self._remembering.end()
                return Outcome(status, got.headers, got.body)
            usages.append(answer.usage)
            bodies.append(got.body)
            self._keep_id(answer.id)
            sent = await self._next(prepared, sent, partial(tuple, answer.turn), answer.calls)
            if sent is not None:
                async with self._dispatch.send(sent, write(sent)) as reply:
                    got = await received(reply, self.service.most_bytes)
        self._note(prepared, 200, usages)
        await self._written()
        billed = reduce(add_usage, usages)
        body = got.body
        if self._offered:  # else there was one answer, and it cannot hide anything
            body = join_answers(bodies, self.dialect, self._is_hidden, handed=self._handed)
            self._account = account(billed, len(bodies), self._saved)
        self._remembering.add(body)
        self._keep(prepared, answer.stop_reason, answer.turn, answer.calls, billed)
        return Outcome(got.status, got.headers, body)

    async def _stream(
        self, prepared: Prepared, reply: Reply, calls: AsyncExitStack
    ) -> AsyncGenerator[bytes]:
        """One stream for the client, made of the streams of as many calls as it took."""
        relay = Relay(self.dialect, self._is_hidden, hide_usage=prepared.asks_for_usage)
        status = reply.status
        try:
            rounds = self._rounds(prepared, relay, reply, calls)
            async with aclosing(rounds):
                async for out in rounds:
                    self._remembering.add(out)
                    yield out
            status = 502 if relay.broken else status  # it ended too early, in order: so does ours
            for out in relay.close():
                self._remembering.add(out)
                yield out
        except HoldfastError as error:
            status = getattr(error, "status", 502)
            if isinstance(error, BrokenOffError):
                raise  # the client's own transfer breaks with it: see there
            for out in relay.error(status, str(error)):
                yield out
        except (asyncio.CancelledError, GeneratorExit):
            status = status if self._said_all else CLIENT_LEFT
            raise
        finally:
            await calls.aclose()
            self._error = self._error or relay.error_kind
            self._note(prepared, status, relay.usages)
            if self._said_all and self._remembering.is_keeping:
                for out in relay.close():  # nothing, unless the client left before it
                    self._remembering.add(out)
                seen = (*relay.visible_calls, *self._handed.values())
                self._keep(prepared, relay.stop_reason, relay.assistant_turn, seen, relay.usage)
            else:
                self._remembering.end()

    async def _passed(
        self, prepared: Prepared, reply: Reply, calls: AsyncExitStack
    ) -> AsyncGenerator[bytes]:
        """A stream of a dialect in which nothing is hidden: every byte as it comes."""
        watched = watch(self.dialect)
        status = reply.status
        try:
            async with aclosing(reply.chunks()) as chunks:
                async for chunk in chunks:
                    watched.feed(chunk)
                    if watched.ended and not self._said_all:
                        self._note(prepared, status, [watched.usage])
                        await self._written()
                        self._said_all = True
                    yield chunk
            status = status if self._said_all else 502
        except UpstreamError as error:
            status = error.status
            raise
        except (asyncio.CancelledError, GeneratorExit):
            status = CLIENT_LEFT  # unless all was said, and written down
            raise
        finally:
            await calls.aclose()
            self._note(prepared, status, [watched.usage])
            self._remembering.end()

    def _keep(
        self,
        prepared: Prepared,
        stop_reason: str,
        turn: Sequence[bytes],
        calls: Sequence[Call],
        usage: object,
    ) -> None:
        """Keep an answer of which the client has all, if it may be given again."""
        hops = self._hidden_answer.hops if self._hidden_answer is not None else ()
        ended = Ended(self.first_id, stop_reason, turn, calls, usage, hops)
        self._remembering.keep(ended, prepared.fitted, prepared.session.name)

    async def _rounds(
        self, prepared: Prepared, relay: Relay, reply: Reply, calls: AsyncExitStack
    ) -> AsyncGenerator[bytes]:
        first = prepared.sent
        following: Conversation | None = first
        while following is not None:
            sent = following
            async with aclosing(reply.chunks()) as chunks:
                last: list[bytes] = []
                async for chunk in chunks:
                    last = await self._fed(relay, chunk)
                    if relay.over:
                        break
                    if last:  # as one piece: a chunk may hold thousands of events
                        yield b"".join(last)
                    last = []
                last += relay.finish()
                following = await self._after(prepared, sent, relay)
                last += relay.hand(self._handed)
                if following is None:  # clients leave, or ask on, as soon as they have the end
                    self._hide(prepared)
                    if not relay.failed:
                        self._note(prepared, 200, relay.usages)
                        await self._written()
                for out in last:
                    yield out
                self._said_all = following is None and not relay.failed
                await ended(chunks)
            await calls.aclose()
            # Without us there was no such call; and no array is closed before it is whole.
            if relay.broken and (sent is not first or self.incoming.wants_array):
                raise BrokenOffError("the upstream broke off its answer", fix="Try again.")
            if following is None:
                return
            reply = await calls.enter_async_context(
                self._dispatch.send(following, write(following))
            )
            if reply.status >= 300:
                status = reply.status if reply.status >= 400 else 502
                raise UpstreamError("the upstream refused to go on", status=status)
            for out in relay.continue_with():
                yield out

    async def _fed(self, relay: Relay, chunk: bytes) -> list[bytes]:
        """What goes to the client; an event of many megabytes is read off the event loop."""
        if relay.waiting_bytes < _LARGE_EVENT:
            return relay.feed(chunk)
        off_loop = self.service.engine.workers.off_loop
        return await off_loop(relay.waiting_bytes, partial(relay.feed, chunk))

    async def _after(
        self, prepared: Prepared, sent: Conversation, relay: Relay
    ) -> Conversation | None:
        """The request that goes on from a stream; None if it failed, or was the last."""
        if relay.failed:
            return None
        self._keep_id(relay.upstream_id)
        asked = (*relay.hidden_calls, *relay.visible_calls)
        return await self._next(prepared, sent, lambda: relay.assistant_turn, asked)

    async def _next(
        self,
        prepared: Prepared,
        sent: Conversation,
        turn_of: Callable[[], tuple[bytes, ...]],
        asked: Sequence[Call],
    ) -> Conversation | None:
        """Answer the hidden calls of a turn: the request that goes on from it, if one does.

        The turn is written only where it is needed again: most answers hide nothing.
        """
        if not any(self._is_hidden(call.name) for call in asked):
            self._count_uses(prepared, asked)
            if self.hops:
                self.hops.append(Hop(turn_of()))
            return None
        turn = with_own_ids(turn_of(), sent, self._is_hidden)
        calls = turn_calls(turn, self.dialect)
        expansions = self._expansions = self._expansions or self._begin_expansions(prepared)
        handed = self._handed = await self._finder.handed(calls) if self._is_lazy else {}
        hidden = [c for n, c in enumerate(calls) if self._is_hidden(c.name) and n not in handed]
        own = (call for call in calls if not self._is_hidden(call.name))
        self._count_uses(prepared, (*own, *handed.values()), hidden)
        if not hidden:
            self.hops.append(Hop(turn, handed=dict(handed)))
            return None
        step = await expansions.step(sent, turn, hidden, alone=len(hidden) == len(calls))
        self.hops.append(Hop(step.turn, step.results, dict(handed)))
        return step.following

    def _count_uses(
        self, prepared: Prepared, calls: Sequence[Call], hidden: Sequence[Call] = ()
    ) -> None:
        """Count the calls that the client gets, and the searches for what was set aside."""
        names: set[str] = set()
        if calls and self._is_lazy and prepared.fitted is not None:
            names = deferred_tools(prepared.fitted.state)
        before = self._tool_use
        self._tool_use = ToolUse(
            before.calls + len(calls),
            before.lazy + sum(call.name in names for call in calls),
            before.searches + sum(call.name in FINDERS for call in hidden),
        )

    @property
    def _is_lazy(self) -> bool:
        """Whether tools were set aside in this request."""
        return not self._offered.isdisjoint(FINDERS)

    def _begin_expansions(self, prepared: Prepared) -> Expansions:
        engine = self._engine
        about = (prepared.asked, prepared.sent)
        self._finder = ToolFinder(*about, engine.workers, engine.tool_embedder)
        return Expansions(
            self._engine,
            self.service.caps,
            partial(self._preparing.room, prepared),
            self._is_hidden,
            partial(self._make_room, prepared),
            session=prepared.session.name,
            finder=self._finder if self._is_lazy else None,
        )

    async def _make_room(
        self, prepared: Prepared, sent: Conversation, tokens: int
    ) -> Conversation | None:
        """Fold what went out until it may grow by some tokens; what was opened since stays."""
        before = self._refitted or prepared.fitted
        if before is None:
            return None
        room = partial(self._preparing.room, prepared)
        opened = room(before.state.sent) - room(sent)
        refitted = await self._preparing.folded(prepared, before, opened + tokens)
        if refitted is None:
            return None
        self._refitted = refitted
        since = sent.messages[len(before.state.sent.messages) :]
        folded = refitted.state.sent
        # What the model thought since then is bound to what was just folded, here and next time.
        self.hops = [Hop(unbound_turn(hop.turn, folded), hop.results) for hop in self.hops]
        return unbound(folded.with_messages(folded.messages + since), len(folded.messages))

    def _is_hidden(self, name: str) -> bool:
        """Whether a call is for a tool that we put into this request: no other is answered.

        A model that was talked into a tool it was not given would open what a tenant owns for a
        request that cites nothing.
        """
        return name in OUR_TOOLS and name in self._offered

    def _keep_id(self, name: str) -> None:
        self.first_id = self.first_id or name
        self.last_id = name

    # --- afterwards ------------------------------------------------------------------------------

    def _note(
        self,
        prepared: Prepared,
        status: int,
        usages: list[dict[str, Any]],
        remembered: ReusedAnswer | None = None,
    ) -> None:
        """Write down what happened, once."""
        self._hide(prepared)
        if self._expansions is not None:
            self._expansions.end()
        fitted = self._refitted or prepared.fitted
        if fitted is None or self.incoming.seen.turn is not None:
            return
        if remembered is None and (routed := self._dispatch.edit) is not None:
            fitted = msgspec.structs.replace(fitted, edits=(*fitted.edits, routed))
        elapsed = (time.perf_counter() - self._started) * 1000
        observed = self._engine.observe(
            prepared.session,
            fitted,
            usages,
            status=status,
            expanded=self._expansions.used if self._expansions is not None else None,
            tools=self._tool_use,
            hidden=self._hidden_answer,
            milliseconds=elapsed,
            read_only=self.incoming.switches.read_only or self._dispatch.is_signed,
            warnings=(SIGNED,) if self._dispatch.is_signed else (),
            learn=self._teaches(prepared.asked),
            billed=self._dispatch.target is not None,
            remembered=remembered,
            first=prepared.fitted.count if prepared.fitted is not None else None,
            error=self._error,
        )
        self.incoming.seen.turn = self.service.later(self._counted(observed))

    async def _counted(self, observed: Awaitable[Turn]) -> Turn:
        """A turn that is written down counts for who asked."""
        turn = await observed
        self.service.allowances.add(self._engine, turn.usage)
        return turn

    async def _written(self) -> None:
        """Wait until the turn is written down, before the client has the end of its answer."""
        if self.incoming.seen.turn is not None:
            await asyncio.wait({self.incoming.seen.turn}, timeout=_RECORD_SECONDS)

    @property
    def _saved(self) -> int | None:
        """What the turn saved over all its calls, as its record says; None if there is none yet."""
        turn = self.incoming.seen.turn
        written = turn.result() if turn is not None and turn.done() else None
        return written.usage.saved if written is not None else None

    def _teaches(self, asked: Conversation) -> bool:
        """Whether reported usage is of what we counted, and not our own count.

        The offline model counts as we do; what a provider keeps is billed without being sent; and
        another model than the one that was counted for counts otherwise.
        """
        if self._dispatch.target is None or self._dispatch.fell_back:
            return False
        return not any(asked.rest.get(name) for name in HELD_BY_PROVIDERS)

    def _link(self, prepared: Prepared) -> None:
        """Let the client's next request be known: it may name this answer and hold no history."""
        self._linked = True
        if names := names_of_answer(prepared.asked, self.first_id):
            answered = self._engine.chains.answered(prepared.session.name, names)
            self.service.later(answered)

    def _hide(self, prepared: Prepared) -> None:
        """Keep the hidden calls for the client's next request, which will be without them."""
        if self.first_id and self.dialect == "openai-responses" and not self._linked:
            self._link(prepared)
        if not self.hops:
            return
        hops, self.hops = tuple(self.hops), []
        self._hidden_answer = Kept(
            hops=hops,
            index=len(prepared.asked.messages),
            place=head_of(prepared.asked),
            seen_id=self.first_id,
            last_id=self.last_id,
            dialect=self.dialect,
        )
        prepared.session.hide(self._hidden_answer)


def _added_tools(asked: Conversation, sent: Conversation) -> frozenset[str]:
    names = {tool.name for tool in offered_tools(sent)}
    return frozenset(names - {tool.name for tool in offered_tools(asked)})
