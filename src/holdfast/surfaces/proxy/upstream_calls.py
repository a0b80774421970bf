"""The only way to an upstream: every call on every path is checked, reserved and settled here.

Two checks precede a call. May its tenant name the objects in it (if the settings' key is sent, see
provider_objects)? And is enough of its daily limit left (see allowance)? Without shared key and
limit a call uses the network directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import NamedTuple

from holdfast.engine.bill import call_cost, price_of
from holdfast.engine.vendor_cache import CallTokens
from holdfast.errors import SettingsError, StoreError, WireError
from holdfast.store import Scope
from holdfast.store.deadline import without_deadline
from holdfast.store.usage_ledger import Amount
from holdfast.surfaces.proxy.allowance import RENEW_SECONDS, Hold
from holdfast.surfaces.proxy.provider_objects import check_own, note_own
from holdfast.surfaces.proxy.request_facts import (
    CallEstimate,
    RequestFacts,
    estimate_call,
    is_free,
    read_facts,
)
from holdfast.surfaces.proxy.seen import RequestSeen
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.tenants import own_tokens
from holdfast.surfaces.proxy.usage_reader import UsageReader
from holdfast.upstream.network import UpstreamError, UpstreamReply
from holdfast.upstream.upstreams import Upstream

_STREAM_BYTES_PER_TOKEN = 2
"""Of a stream that ends before its use is reported: each event brings a few tokens, and its frame
alone has a hundred bytes, so that more is counted than was shown."""
_OK = range(200, 300)
_READING = 4
"""How many times faster a body is parsed and walked than its contents are cited."""


class UpstreamCall(NamedTuple):
    """A call that is about to be made."""

    upstream: Upstream
    method: str
    path: str
    """With single slashes, as policies know it; the address has the path as it is sent."""
    url: str
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes]
    model: str = ""
    """By the name under which it is paid for, where that is known."""
    dialect: str = ""
    tokens: int | None = None
    """Input tokens at most, where they were counted."""
    creates: bool = False
    """Whether the answer names objects that belong to who asks."""
    own: tuple[str, ...] = ()
    """Objects that the path names."""


class UpstreamCalls:
    """The upstream calls of one request."""

    def __init__(
        self, service: Service, headers: tuple[tuple[str, str], ...], query: str, seen: RequestSeen
    ) -> None:
        self._service = service
        self._headers = headers
        self._query = query
        self._seen = seen
        self._faults = service.faults(seen.id)

    def is_shared(self, upstream: Upstream) -> bool:
        """Return whether several tenants reach one account at an upstream.

        Without tokens only this machine gets in, and all tenants are one person's.
        """
        settings = self._service.settings
        has_tenants = settings.tenant_by != "none" and bool(own_tokens(settings))
        return has_tenants and not upstream.takes_clients_key

    def is_guarded(self, upstream: Upstream) -> bool:
        """Return whether calls to an upstream are looked at before they are sent."""
        return self._service.allowances.is_limited or self.is_shared(upstream)

    async def check_allowance(self, upstream: Upstream) -> str:
        """Raise if the daily limit is reached; return a warning if most of it is used."""
        if not self._service.allowances.is_limited:
            return ""
        scopes = await self._service.tenants.accounts(self._headers, self._query, upstream)
        return await self._service.allowances.check(scopes)

    def send(
        self, call: UpstreamCall, *, raw: bool = False
    ) -> AbstractAsyncContextManager[UpstreamReply]:
        """Send a request; the answer is read inside `async with`.

        Raises on entering:
            AllowanceError: the tenant's share of the day does not allow it.
            ForeignObjectError: it names an object that is not its tenant's.
        """
        if not self.is_guarded(call.upstream):
            http = self._service.http
            return http.send(call.url, call.method, call.headers, call.body, raw=raw)
        return self._send_guarded(call)

    @asynccontextmanager
    async def _send_guarded(self, call: UpstreamCall) -> AsyncIterator[UpstreamReply]:
        is_shared = self.is_shared(call.upstream)
        facts = await self._facts(call, is_strict=is_shared)
        if is_shared:
            await self._check_objects(call, facts)
        meter = await self._reserved(call, facts)
        try:
            sending = self._service.http.send(call.url, call.method, call.headers, call.body)
            async with sending as reply:
                names = call.creates and is_shared
                reader = UsageReader(reply.status, reply.headers, call.dialect, names=names)
                meter.answered(reply.status, reader)
                yield _Watched(self, call, reply, reader, meter)
        except asyncio.CancelledError:
            meter.client_left()
            raise
        finally:
            meter.close()

    async def _facts(self, call: UpstreamCall, *, is_strict: bool) -> RequestFacts:
        """Return the facts in the body; a body sent in pieces is a form, without facts."""
        if not isinstance(call.body, bytes) or not call.body:
            return RequestFacts(0)
        work = partial(read_facts, call.body, call.upstream.family)
        size = len(call.body)
        try:
            return await self._service.engine.workers.off_loop(size // _READING, work)
        except WireError:
            # Another parser might read ids in JSON that ours refuses: the second of two equal keys,
            # for example.
            if is_strict:
                raise
            return RequestFacts(size, is_held=True)

    async def _check_objects(self, call: UpstreamCall, facts: RequestFacts) -> None:
        names = sorted({*facts.names, *call.own})
        if names:
            engine = await self._service.tenants.engine_for(self._headers, self._query)
            await check_own(engine, call.upstream, names)

    async def note_objects(self, call: UpstreamCall, names: set[str]) -> None:
        """Note whose the objects are that an answer names, before its client knows them."""
        with self._faults.caught("objects"):
            try:
                engine = await self._service.tenants.engine_for(self._headers, self._query)
                await note_own(engine, call.upstream, names)
            except StoreError as error:
                self._seen.store_failed_with(error)

    async def _reserved(self, call: UpstreamCall, facts: RequestFacts) -> CallMeter:
        """Reserve a call's maximum use; without a store, the setting for failures decides."""
        meter = CallMeter(self._service)
        has_body = not isinstance(call.body, bytes) or bool(call.body)
        is_limited = self._service.allowances.is_limited
        if not is_limited or is_free(call.method, call.path, has_body=has_body):
            return meter
        with self._faults.caught("allowance"):
            try:
                tenants = self._service.tenants
                accounts = await tenants.accounts(self._headers, self._query, call.upstream)
                await meter.reserve(accounts, self._estimate(call, facts))
            except StoreError as error:
                self._seen.store_failed_with(error)
                if self._service.settings.on_store_failure == "refuse":
                    raise
        return meter

    def _estimate(self, call: UpstreamCall, facts: RequestFacts) -> CallEstimate:
        registry = self._service.engine.options.registry
        estimate = partial(estimate_call, facts, registry, call.path, tokens=call.tokens)
        try:
            return estimate(model=call.model)
        except SettingsError:  # the model's name is none
            return estimate(model="unknown:unknown")


class CallMeter:
    """The reservation of one call, and its use."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._allowances = service.allowances
        self._holds: list[Hold] = []
        self._estimate: CallEstimate | None = None
        self._reader: UsageReader | None = None
        self._is_refused = False
        self._has_left = False
        self._is_broken = False
        self._settled: Amount | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def reserve(self, scopes: Sequence[Scope], estimate: CallEstimate) -> None:
        """Reserve the most that a call may use."""
        self._estimate = estimate
        most = self._amount(CallTokens(input=estimate.input, output=estimate.output))
        least = self._amount(CallTokens(input=estimate.likely_input))
        self._holds = await self._allowances.reserve(scopes, most, least)
        self._renewing = asyncio.create_task(self._renew(), context=without_deadline())

    def answered(self, status: int, reader: UsageReader) -> None:
        """Take the reader of an answer that has begun."""
        self._reader = reader
        self._is_refused = status not in _OK

    def client_left(self) -> None:
        """Note that nobody waits for the answer any more."""
        self._has_left = True

    def broke_off(self) -> None:
        """Note that the upstream ended the answer before it was whole."""
        self._is_broken = True

    async def settle(self) -> None:
        """Settle with the known use; usage reported later is added then."""
        used = self._used()
        if not self._holds or used == self._settled:
            return
        self._holds = await self._allowances.settle(self._holds, used)
        self._settled = used

    def close(self) -> None:
        """Settle after the response, if that was not done before."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._holds and self._used() != self._settled:
            self._service.later(self.settle())

    def _used(self) -> Amount:
        """Return the use of the call: as reported, else estimated.

        A complete response without a report may have been of any length: a client can leave just
        before the report. For a stream, and for a response that the upstream broke off, providers
        bill the bytes sent; a background response continues without its client, who can fetch all
        of it later.
        """
        estimate, reader = self._estimate, self._reader
        if estimate is None or self._is_refused:
            return Amount()
        most = CallTokens(input=estimate.input, output=estimate.output)
        if reader is None:
            return self._amount(most) if self._has_left else Amount()
        reported = reader.tokens
        if reported is not None and reader.is_final:
            return self._amount(reported)
        if not estimate.output:
            return self._amount(reported or CallTokens(input=estimate.likely_input))
        if estimate.is_background or not (reader.is_stream or self._is_broken):
            return self._amount(most)
        streamed = min(estimate.output, reader.received // _STREAM_BYTES_PER_TOKEN)
        usage = reported or CallTokens(input=estimate.likely_input)
        return self._amount(CallTokens(input=usage.input, output=max(streamed, usage.output)))

    def _amount(self, tokens: CallTokens) -> Amount:
        model = self._estimate.model if self._estimate is not None else ""
        price = price_of(model, self._allowances.now()) if model else None
        dollars = float(call_cost(price, tokens)) if price is not None else 0.0
        return Amount(tokens.input + tokens.output, dollars)

    async def _renew(self) -> None:
        """Keep the reservation while the call lasts: a slow reader must not outlive it."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._allowances.renew(self._holds)
            except StoreError:
                continue  # it lives for two more rounds


class _Watched:
    """An answer that is read on its way to the client."""

    def __init__(
        self,
        calls: UpstreamCalls,
        call: UpstreamCall,
        reply: UpstreamReply,
        reader: UsageReader,
        meter: CallMeter,
    ) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._calls = calls
        self._call = call
        self._reply = reply
        self._reader = reader
        self._meter = meter

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the response; the use is settled before the client has the end of it.

        The last piece of a complete response is held back for that: its client may send the next
        request at once, which would compete with its own reservation.
        """
        last_piece = b""
        try:
            async with aclosing(self._reply.chunks()) as pieces:
                async for piece in pieces:
                    await self._read(piece)
                    if self._reader.is_stream:
                        yield piece
                        continue
                    if last_piece:
                        yield last_piece
                    last_piece = piece
        except UpstreamError:
            self._meter.broke_off()
            raise
        await self._finish()
        await self._settle()
        if last_piece:
            yield last_piece

    async def _finish(self) -> None:
        with self._calls._faults.caught("usage"):
            off_loop = self._calls._service.engine.workers.off_loop
            await off_loop(self._reader.received // _READING, self._reader.finish)
            await self._take_names()

    async def _read(self, piece: bytes) -> None:
        with self._calls._faults.caught("usage"):
            was_final = self._reader.is_final
            self._reader.feed(piece)
            await self._take_names()
            if self._reader.is_final and not was_final:
                await self._settle()

    async def _take_names(self) -> None:
        if names := self._reader.take_names():
            await self._calls.note_objects(self._call, names)

    async def _settle(self) -> None:
        with self._calls._faults.caught("allowance"):
            try:
                await self._meter.settle()
            except StoreError as error:
                self._calls._seen.store_failed_with(error)
