"""One request of a client, from its first byte to the last byte of its response.

Read it from top to bottom: the request is fitted and sent, its hidden calls are answered, and the
turn is recorded. After an internal error it is sent with the edits of the previous request, or
unchanged (docs/discussions/reliability.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial, reduce
from typing import Any

from holdfast.answer_cache import Answer
from holdfast.engine import Holdfast, ReusedAnswer
from holdfast.errors import StoreError
from holdfast.expand.tool_search import OUR_TOOLS
from holdfast.faults import Faults
from holdfast.surfaces.proxy.answer_reuse import AnswerReuse, CompleteAnswer, edit_of
from holdfast.surfaces.proxy.answer_stream import joined_stream, passed_stream
from holdfast.surfaces.proxy.delivery import Outcome, Pieces, UpstreamResponse, account, received
from holdfast.surfaces.proxy.dispatch import Dispatch
from holdfast.surfaces.proxy.incoming_request import IncomingRequest
from holdfast.surfaces.proxy.request_preparer import PreparedRequest, RequestPreparer
from holdfast.surfaces.proxy.service import READING, Service
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.surfaces.proxy.turn_record import TurnRecord
from holdfast.surfaces.proxy.upstreams import returned_headers
from holdfast.upstream.hidden_calls import HiddenCalls
from holdfast.upstream.network import UpstreamError, UpstreamReply, is_stream
from holdfast.upstream.own_tools import OwnTools, added_tools
from holdfast.wire import Conversation, write
from holdfast.wire.responses import (
    CONTINUED,
    ModelCall,
    add_usage,
    error_kind,
    join_responses,
    read_response,
)
from holdfast.wire.responses import ParsedResponse as UpstreamAnswer

PREPARE_SECONDS = 60.0
"""Seconds to prepare a request before it is sent unedited. The store has a shorter deadline: see
store/deadline.py."""
UNWRITTEN = "the turn is not written down: the store fails or does not answer"


class RequestHandler:
    """Handles one request. Create one instance per request."""

    def __init__(self, service: Service, incoming: IncomingRequest, faults: Faults) -> None:
        self.service = service
        self.incoming = incoming
        self.dialect = incoming.route.dialect
        self.faults = faults
        self.dispatch: Dispatch
        """The upstreams of the request."""
        self.hidden: HiddenCalls
        self.record: TurnRecord
        self.remembering: AnswerReuse
        self._engine: Holdfast
        """That of the tenant who asks."""
        self._preparing: RequestPreparer
        self._account: dict[str, str] = {}
        """Extra response headers when the answer took several upstream calls."""
        self._is_written = True
        """Whether the turn was written down when the answer ended."""

    async def run(self) -> Outcome:
        """Answer the request; raise a HoldfastError with the reason if that is impossible."""
        async with asyncio.timeout(PREPARE_SECONDS):
            engine = self._engine = await self.service.tenants.of(self.incoming)
        tenant = self.incoming.seen.tenant = engine.scope.workspace
        conversation = await self.service.read(self.incoming.body, self.dialect, tenant)
        model = self.incoming.route.model or conversation.model or ""
        self.incoming.seen.model = model
        about = (self.service, self.incoming, engine)
        self.dispatch = Dispatch(self.service, self.incoming, model)
        self._preparing = RequestPreparer(*about, self.dispatch)
        self.remembering = AnswerReuse(*about, self.faults)
        self.record = TurnRecord(*about, self.dispatch, self.faults)
        try:
            return await self._from_memory(conversation) or await self._asked(conversation)
        except BaseException:
            self.remembering.end()  # other requests that wait for this answer must continue
            raise

    async def _from_memory(self, conversation: Conversation) -> Outcome | None:
        """Return a cached answer, if there is one; nothing is sent, and the record has that."""
        # Without the store, or after an internal error, the request is sent.
        with self.faults.caught("answer cache"), suppress(StoreError):
            answer = await self.remembering.look(conversation)
            if answer is not None:
                return await self._given_again(conversation, answer)
        return None

    async def _given_again(self, conversation: Conversation, answer: Answer) -> Outcome:
        prepared = await self._preparing.unsent(conversation, edit_of(answer))
        self.incoming.seen.session = prepared.session.name
        self.service.telemetry.metrics.answered(answer.tier)
        self.record.ids.keep(answer.given.id)
        hidden = self._hidden_calls(prepared)
        reused = ReusedAnswer(answer.given.output_tokens, answer.age_seconds)
        self.record.note(prepared, hidden, 200, [], remembered=reused)
        await self.record.written()
        headers, body = self.remembering.replay(answer)
        return Outcome(200, prepared.headers | headers, body)

    # --- the request -----------------------------------------------------------------------------

    async def _asked(self, conversation: Conversation) -> Outcome:
        """Send the request, and give the answer that comes."""
        nearly_used = await self._allowed()
        prepared = await self._prepared(conversation)
        warnings = prepared.warnings + self.remembering.warnings + nearly_used
        prepared = prepared._replace(warnings=warnings)
        with self.faults.caught("send"):
            return await self._sent(prepared)
        return await self._sent(await self.unedited(conversation))

    async def _allowed(self) -> tuple[str, ...]:
        """Raise if the tenant has reached its daily limit; an unavailable store blocks nobody."""
        warning = ""
        with self.faults.caught("allowance"):
            try:
                if self.dispatch.target is not None:
                    upstream = self.dispatch.target.upstream
                    warning = await self.dispatch.calls.check_allowance(upstream)
            except StoreError as error:
                self.incoming.seen.store_failed_with(error)
        return (warning,) if warning else ()

    async def _prepared(self, conversation: Conversation) -> PreparedRequest:
        """Make the request fit; after an internal error, take the last edits, or none."""
        with self.faults.caught("prepare"):
            async with asyncio.timeout(PREPARE_SECONDS):
                return await self._ready(await self._preparing.prepare(conversation))
        with self.faults.caught("replay"):
            replayed = await self._preparing.replay(conversation)
            if replayed is not None:
                return await self._ready(replayed)
        return await self.unedited(conversation)

    async def _ready(self, prepared: PreparedRequest) -> PreparedRequest:
        """Make ready to send a request, and to answer the calls of tools that we put into it."""
        if self.remembering.headers:
            self.service.telemetry.metrics.answered("miss")
        self.incoming.seen.session = prepared.session.name
        self.dispatch.leave_out(partial(self._preparing.takes, prepared))
        own_tools = await self._own_tools_in(prepared)
        self.hidden = self._hidden_calls(prepared, own_tools)
        return prepared

    async def unedited(self, conversation: Conversation) -> PreparedRequest:
        """Make ready to send the client's own bytes."""
        prepared = await self._preparing.unedited(conversation, self.faults)
        self.incoming.seen.session = prepared.session.name
        self.hidden = self._hidden_calls(prepared)
        return prepared

    def _hidden_calls(
        self, prepared: PreparedRequest, own_tools: OwnTools | None = None
    ) -> HiddenCalls:
        about = (self._engine, prepared.request, self.service.caps, self.faults)
        return HiddenCalls(*about, own_tools)

    async def _own_tools_in(self, prepared: PreparedRequest) -> OwnTools:
        """Return the tools that go out and are not the client's, which may have 10,000 of them."""
        asked_conversation, sent_conversation = prepared.asked, prepared.sent
        if asked_conversation is sent_conversation:
            return OwnTools()
        size = len(sent_conversation.frame.head) + len(sent_conversation.frame.tail)
        work = partial(added_tools, asked_conversation, sent_conversation, OUR_TOOLS)
        return await self.service.engine.workers.off_loop(size // READING, work)

    async def _sent(self, prepared: PreparedRequest) -> Outcome:
        headers = prepared.headers | self.remembering.headers
        if self.service.peers is not None:
            headers[f"{PREFIX}worker"] = str(self.service.peers.number)
        calls = AsyncExitStack()
        try:
            tokens = prepared.fitted.count.upper if prepared.fitted is not None else None
            sending = self.dispatch.send(prepared.sent, prepared.body, tokens)
            reply = await calls.enter_async_context(sending)
            headers |= self.dispatch.headers
            if reply.status < 400 and is_stream(reply):
                headers = returned_headers(reply.headers, changed=True) | headers
                open_calls = calls.pop_all()
                passes = prepared.unedited or self.dialect not in CONTINUED
                stream = (passed_stream if passes else joined_stream)(
                    self, prepared, reply, open_calls
                )
                return Outcome(reply.status, headers, Pieces(stream, open_calls, self.remembering))
            first = await received(reply, self.service.most_bytes)
        finally:
            await calls.aclose()
        last = await self._whole_answer(prepared, first)
        if not self._is_written:
            warnings = filter(None, (headers.get(f"{PREFIX}warning"), UNWRITTEN))
            headers[f"{PREFIX}warning"] = "; ".join(warnings)
        return last._replace(headers=last.headers | headers | self._account)

    async def reply_to(
        self, calls: AsyncExitStack, request: Conversation, body: bytes
    ) -> UpstreamReply:
        """Send another request for the same answer; its reply is read until `calls` are closed.

        Raises:
            UpstreamError: the upstream refuses it.
        """
        reply = await calls.enter_async_context(self.dispatch.send(request, body))
        if reply.status >= 300:
            status = reply.status if reply.status >= 400 else 502
            raise UpstreamError("the upstream refused to go on", status=status)
        return reply

    # --- an answer in one piece ------------------------------------------------------------------

    async def _whole_answer(self, prepared: PreparedRequest, got: UpstreamResponse) -> Outcome:
        """Return an answer in one piece, after as many calls as the model's expansions took."""
        if not prepared.unedited:
            with self.faults.caught("answer"):
                return await self._joined(prepared, got)
            if self.hidden.may_be_in(got.body):
                return await self._sent(await self.unedited(prepared.asked))
        # The client understands the response without us: forward it unchanged.
        usages: list[dict[str, Any]] = []
        with self.faults.caught("usage"):
            if got.status < 400:
                usages = [(await self._read_answer(got.body)).usage]
            else:
                self.record.error = error_kind(got.body, got.headers)
        await self.note(prepared, got.status, usages)
        self.remembering.end()
        return Outcome(got.status, got.headers, got.body)

    async def _joined(self, prepared: PreparedRequest, got: UpstreamResponse) -> Outcome:
        """Go on until the model calls none of our tools, and join its answers."""
        bodies: list[bytes] = []
        usages: list[dict[str, Any]] = []
        request: Conversation | None = prepared.sent
        while request is not None:
            status = got.status
            if status < 400:
                answer = await self._read_answer(got.body)
                status = answer.status
            if status >= 400:
                request = self.hidden.start_over(status)
                if request is None:  # nothing was sent: the client may retry
                    self.hidden.hops.clear()
                    self.record.error = error_kind(got.body, got.headers)
                    await self.note(prepared, status, usages)
                    self.remembering.end()
                    return Outcome(status, got.headers, got.body)
            else:
                usages.append(answer.usage)
                bodies.append(got.body)
                self.record.ids.keep(answer.id)
                turn = partial(tuple, answer.turn)
                request = await self.hidden.next_request(request, turn, answer.calls)
            if request is not None:
                async with self.dispatch.send(request, write(request)) as reply:
                    got = await received(reply, self.service.most_bytes)
        body = got.body
        if self.hidden.offered:  # else there was one answer, and it cannot hide anything
            is_hidden, handed = self.hidden.is_hidden, self.hidden.handed
            work = partial(join_responses, bodies, self.dialect, is_hidden, handed=handed)
            size = sum(map(len, bodies)) // READING
            body = await self.service.engine.workers.off_loop(size, work)
        await self.note(prepared, 200, usages)
        billed = reduce(add_usage, usages)
        with self.faults.caught("record"):
            self._account = account(billed, len(bodies), self.record.saved)
        with self.faults.caught("answer cache"):
            self.remembering.add(body)
            self.keep(prepared, answer.stop_reason, answer.turn, answer.calls, billed)
        return Outcome(got.status, got.headers, body)

    async def _read_answer(self, body: bytes) -> UpstreamAnswer:
        """Read an answer; a long one, as with 100,000 calls, off the event loop."""
        work = partial(read_response, body, self.dialect)
        return await self.service.engine.workers.off_loop(len(body) // READING, work)

    # --- afterwards ------------------------------------------------------------------------------

    async def note(
        self, prepared: PreparedRequest, status: int, usages: list[dict[str, Any]]
    ) -> None:
        """Write the turn down before the client has the end of its answer."""
        self.begin_note(prepared, status, usages)
        with self.faults.caught("record"):
            self._is_written = await self.record.written()

    def begin_note(
        self, prepared: PreparedRequest, status: int, usages: list[dict[str, Any]]
    ) -> None:
        """Begin to write the turn down, once."""
        with self.faults.caught("record"):
            self.record.note(prepared, self.hidden, status, usages)

    def keep(
        self,
        prepared: PreparedRequest,
        stop_reason: str,
        turn: Sequence[bytes],
        calls: Sequence[ModelCall],
        usage: object,
    ) -> None:
        """Keep an answer of which the client has all, if it may be given again."""
        answer = self.record.hidden_answer
        hops = answer.hops if answer is not None else ()
        ended = CompleteAnswer(self.record.ids.first, stop_reason, turn, calls, usage, hops)
        self.remembering.keep(ended, prepared.fitted, prepared.session.name)
