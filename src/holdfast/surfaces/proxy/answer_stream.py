"""The stream for a client, joined from the streams of all upstream calls of an answer.

When something fails here, the client already has a part of its answer, so no header can report it.
The handling depends on the place of the failure:

- a stream that cannot be parsed is forwarded unchanged, up to a call of a hidden tool;
- after that, and if hidden calls cannot be answered, the answer to the client's own request
  follows;
- failures of the record or the cache are only logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from holdfast.errors import HoldfastError
from holdfast.faults import is_internal
from holdfast.surfaces.proxy.meter import Meter
from holdfast.surfaces.proxy.request_preparer import PreparedRequest
from holdfast.surfaces.proxy.seen import CLIENT_LEFT
from holdfast.surfaces.proxy.service import READING
from holdfast.upstream.network import BrokenOffError, UpstreamError, UpstreamReply, ended
from holdfast.wire import Conversation, write
from holdfast.wire.responses import CONTINUED, Relay, resumed

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.exchange import RequestHandler

_T = TypeVar("_T")
_LARGE_EVENT = 250_000
"""Bytes of one event that are not read on the event loop: two milliseconds."""
_BLOCK_START = b'"content_block_start"'


class _Fed(NamedTuple):
    """What becomes of a chunk of the upstream."""

    pieces: Sequence[bytes]
    """The client's part of it."""
    over: bool = False
    """Nothing of the upstream's stream is needed after it."""
    hides: bool = False
    """A hidden call begins in it, which nobody could read."""


class _RoundEnd(NamedTuple):
    """How one upstream stream came to its end."""

    pieces: Sequence[bytes] = ()
    """The last bytes for the client."""
    following: Conversation | None = None
    """The next request of the same answer; None if the stream was the last."""
    failed: bool = False
    broken: bool = False
    usages: Sequence[dict[str, Any]] = ()


async def passed_stream(
    handling: RequestHandler, prepared: PreparedRequest, reply: UpstreamReply, calls: AsyncExitStack
) -> AsyncGenerator[bytes]:
    """Pass a stream on byte for byte: nothing is hidden in it."""
    meter = Meter(handling.dialect, handling.faults)
    status = reply.status
    has_end = False
    try:
        async with aclosing(reply.chunks()) as chunks:
            async for chunk in chunks:
                meter.feed(chunk)
                if meter.ended and not has_end:
                    has_end = True
                    with handling.faults.caught("record"):
                        await handling.note(prepared, status, [meter.usage])
                yield chunk
        if meter.works and not has_end and handling.dialect not in CONTINUED:
            status = 502
    except UpstreamError as error:
        status = error.status
        raise
    except (asyncio.CancelledError, GeneratorExit):
        status = CLIENT_LEFT  # unless the answer is complete and recorded
        raise
    finally:
        with handling.faults.caught("send"):
            await calls.aclose()
        with handling.faults.caught("record"):
            handling.begin_note(prepared, status, [meter.usage])
            handling.remembering.end()


def joined_stream(
    handling: RequestHandler, prepared: PreparedRequest, reply: UpstreamReply, calls: AsyncExitStack
) -> AsyncGenerator[bytes]:
    """Give one stream, whose hidden calls are answered on the way."""
    return _JoinedStream(handling, prepared, calls).pieces(reply)


class _JoinedStream:
    """One stream of a client."""

    def __init__(
        self, handling: RequestHandler, prepared: PreparedRequest, calls: AsyncExitStack
    ) -> None:
        self._handling = handling
        self._faults = handling.faults
        self._hidden = handling.hidden
        self._prepared = prepared
        self._calls = calls
        self._relay: Relay | None = None
        self._has_begun = False
        """The client has a part of the stream."""
        self._has_end = False
        """The client has the end of the stream."""
        self._is_raw = False
        """The upstream's stream passes as it comes, because it could not be read."""
        self._blocks = 0
        """Blocks of Anthropic's that the client's stream has."""
        self._blocks_before: int | None = None
        """The same when the latest upstream stream began; None while that is the first."""

    async def pieces(self, reply: UpstreamReply) -> AsyncGenerator[bytes]:
        """Give the stream piece by piece."""
        status = reply.status
        try:
            with self._faults.caught("relay"):
                relay = self._relay = Relay(
                    self._handling.dialect,
                    self._hidden.is_hidden,
                    hide_usage=self._prepared.asks_for_usage,
                )
                async with aclosing(self._rounds(relay, reply)) as rounds:
                    async for out in rounds:
                        with self._faults.caught("relay"):
                            self._add_given(out)
                        yield out
                if not self._is_raw:
                    status = 502 if relay.broken else status  # it ended early, and so does ours
                    for out in relay.close():
                        with self._faults.caught("relay"):
                            self._add_given(out)
                        yield out
                    return
            if not self._has_end:
                async with aclosing(self._begun_anew()) as chunks:
                    async for out in chunks:
                        yield out
        except HoldfastError as error:
            status = getattr(error, "status", 502)
            if isinstance(error, BrokenOffError) or self._relay is None:
                raise  # the client's own transfer breaks with it: see there
            for out in self._relay.error(status, str(error)):
                yield out
        except (asyncio.CancelledError, GeneratorExit):
            status = status if self._has_end else CLIENT_LEFT
            raise
        finally:
            with self._faults.caught("send"):
                await self._calls.aclose()
            with self._faults.caught("record"):
                self._end(status)

    def _add_given(self, piece: bytes) -> None:
        """Count a piece that the client gets, and keep it for the answer cache."""
        self._has_begun = True
        self._blocks += piece.count(_BLOCK_START)
        with self._faults.caught("answer cache"):
            self._handling.remembering.add(piece)

    def _end(self, status: int) -> None:
        """Write down how the stream ended, and keep the answer if it may be given again."""
        usages: list[dict[str, Any]] = []
        with self._faults.caught("usage"):
            if self._relay is not None:
                usages = self._relay.usages
                self._handling.record.error = self._relay.error_kind
        self._handling.begin_note(self._prepared, status, usages)
        remembering = self._handling.remembering
        with self._faults.caught("answer cache"):
            if self._relay is None or self._is_raw or not self._has_end:
                remembering.end()
            elif remembering.is_keeping:
                self._keep(self._relay, self._relay.usage)
            else:
                remembering.end()

    def _keep(self, relay: Relay, usage: object) -> None:
        for out in relay.close():  # nothing, unless the client left before it
            self._handling.remembering.add(out)
        visible = (*relay.visible_calls, *self._hidden.handed.values())
        self._handling.keep(self._prepared, relay.stop_reason, relay.assistant_turn, visible, usage)

    # --- as many upstream calls as it takes ------------------------------------------------------

    async def _rounds(self, relay: Relay, reply: UpstreamReply) -> AsyncGenerator[bytes]:
        first = request = self._prepared.sent
        while True:
            async with aclosing(reply.chunks()) as chunks:
                last: Sequence[bytes] = ()
                try:
                    async for chunk in chunks:
                        fed = None
                        with self._faults.caught("relay"):
                            fed = await self._fed(relay, chunk)
                        fed = fed or self._unread(relay, chunk)
                        if fed.hides:
                            return
                        if fed.over:
                            last = fed.pieces
                            break
                        if fed.pieces:  # as one piece: a chunk may hold thousands of events
                            yield b"".join(fed.pieces)
                except Exception as error:
                    # Gemini's streams have no last event: the client may have the whole answer when
                    # reading fails, and would get its calls twice if the request were sent again.
                    if not (is_internal(error) and relay.has_end):
                        raise
                    self._faults.add("relay", error)
                end = await self._round_end(relay, request)
                for out in (*last, *end.pieces):
                    yield out
                self._has_end = end.following is None and not end.failed
                await ended(chunks)
            await self._calls.aclose()
            # Without us there was no such call; and no array is closed before it is whole.
            if end.broken and (request is not first or self._handling.incoming.wants_array):
                raise BrokenOffError("the upstream broke off its answer", fix="Try again.")
            if end.following is None:
                return
            self._blocks_before = self._blocks
            request, reply = await self._next_reply(end.following)
            for out in relay.continue_with():
                yield out

    async def _fed(self, relay: Relay, chunk: bytes) -> _Fed:
        """Read a chunk; an event of many megabytes is read off the event loop."""
        if self._is_raw:
            return self._unread(relay, chunk)
        waiting = 0
        with self._faults.caught("relay"):
            waiting = relay.waiting_bytes
        if waiting < _LARGE_EVENT:
            return _Fed(relay.feed(chunk), relay.over)
        off_loop = self._handling.service.engine.workers.off_loop
        return _Fed(await off_loop(waiting, partial(relay.feed, chunk)), relay.over)

    def _unread(self, relay: Relay, chunk: bytes) -> _Fed:
        """Return a chunk unchanged after the held bytes; later chunks are unchanged too."""
        if not self._is_raw:
            self._is_raw = True
            with self._faults.caught("relay"):
                if relay.holding:  # a hidden call came before
                    return _Fed((), hides=True)
                chunk = relay.unread(chunk)
        hides = self._hidden.may_be_in(chunk)
        if self._blocks_before is not None:
            chunk = resumed(chunk, self._blocks_before)
        return _Fed([chunk], hides=hides)

    async def _round_end(self, relay: Relay, sent: Conversation) -> _RoundEnd:
        """Read the end of an upstream stream; the last one is written down."""
        end = _RoundEnd() if self._is_raw else await self._read_end(relay, sent)
        if end.following is None:  # clients leave, or ask on, as soon as they have the end
            with self._faults.caught("record"):
                self._handling.record.hide(self._prepared, self._hidden)
            with self._faults.caught("record"):
                if not end.failed:
                    await self._handling.note(self._prepared, 200, list(end.usages))
        return end

    async def _read_end(self, relay: Relay, sent: Conversation) -> _RoundEnd:
        """Read the end of an upstream stream, and answer its hidden calls.

        After an internal error with hidden calls, the client's own request is sent; without hidden
        calls the stream ends unchanged.
        """
        with self._faults.caught("relay"):
            pieces = await self._off_loop(relay, relay.finish)
            following = await self._following(relay, sent)
            pieces += relay.hand(self._hidden.handed)
            return _RoundEnd(pieces, following, relay.failed, relay.broken, relay.usages)
        with self._faults.caught("relay"):
            if relay.holding:
                return _RoundEnd(following=self._hidden.without_tools())
            self._is_raw = True
            return _RoundEnd([relay.held()])
        return _RoundEnd()

    async def _following(self, relay: Relay, sent: Conversation) -> Conversation | None:
        """Return the next request of a stream; None if it failed, or was the last."""
        if relay.failed:
            return None
        self._handling.record.ids.keep(relay.upstream_id)
        calls = await self._off_loop(relay, lambda: relay.calls)
        return await self._hidden.next_request(sent, lambda: relay.assistant_turn, calls)

    async def _off_loop(self, relay: Relay, work: Callable[[], _T]) -> _T:
        """Go through a whole stream; a long one, as with 100,000 calls, off the event loop."""
        workers = self._handling.service.engine.workers
        return await workers.off_loop(relay.read_bytes // READING, work)

    # --- after an internal error -----------------------------------------------------------------

    async def _next_reply(self, following: Conversation) -> tuple[Conversation, UpstreamReply]:
        """Send the next request; after an internal error, the client's own instead.

        If the upstream refuses it, the first request is sent again without our tools.
        """
        with self._faults.caught("send"):
            try:
                return following, await self._reply_to(following)
            except UpstreamError as error:
                again = self._hidden.start_over(error.status)
                if again is None:
                    raise
            await self._calls.aclose()
            return again, await self._reply_to(again)
        conversation, body = self._hidden.without_tools(), self._handling.incoming.body
        return following, await self._handling.reply_to(self._calls, conversation, body)

    async def _reply_to(self, request: Conversation) -> UpstreamReply:
        return await self._handling.reply_to(self._calls, request, write(request))

    async def _begun_anew(self) -> AsyncGenerator[bytes]:
        """Yield the answer to the client's own request, after the bytes already sent."""
        await self._calls.aclose()
        self._is_raw = True
        unedited = await self._handling.unedited(self._prepared.asked)
        reply = await self._handling.reply_to(self._calls, unedited.sent, unedited.body)
        passing = passed_stream(self._handling, unedited, reply, self._calls)
        async with aclosing(passing) as chunks:
            async for chunk in chunks:
                yield resumed(chunk, self._blocks) if self._has_begun else chunk
