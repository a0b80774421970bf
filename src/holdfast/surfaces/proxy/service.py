"""What all requests of a running proxy share.

service: after sending, before exchange.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from holdfast.calling.expansions import Caps
from holdfast.calling.network import HttpSending, Reply, Sending, UpstreamError
from holdfast.calling.upstreams import OFFICIAL, OWNERS, Family, configured
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.jobs import Attempt
from holdfast.settings import Settings
from holdfast.surfaces.proxy.gathering import Peers
from holdfast.surfaces.proxy.login import Logins
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.recent import Recent
from holdfast.surfaces.proxy.telemetry import Telemetry
from holdfast.surfaces.proxy.tenants import Tenants, own_tokens
from holdfast.surfaces.proxy.upstreams import address, outgoing_headers, without
from holdfast.wire import Conversation
from holdfast.wire.strict import Limits

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.incoming import Incoming

READING = 16
"""How many times faster JSON is read than what it holds is cited."""
_SAFE = "/:@!$&'()*+,;=~"


_T = TypeVar("_T")


class Service:
    """The engines, the upstreams, and the work that goes on behind answers."""

    def __init__(
        self,
        engine: Holdfast,
        settings: Settings,
        http: HttpSending,
        offline: Sending,
        peers: Peers | None = None,
    ) -> None:
        self.peers = peers
        """The other processes that serve at the same port, if there are any."""
        self.engine = engine
        """That of the store's owner; requests are worked on by those of their tenants."""
        self.tenants = Tenants(engine, settings)
        self.logins = Logins(settings, peers=peers)
        self.settings = settings
        self.http = http
        self.offline = offline
        self.upstreams = configured(settings)
        self.answers_offline = settings.serve_offline or not self.upstreams
        """Whether the offline model answers for families without an upstream: where there is any,
        an answer that only quotes would pass for the provider's."""
        self.telemetry = Telemetry(settings)
        self.limits = Limits(
            max_body_bytes=settings.max_body_bytes, max_keys=settings.max_json_keys
        )
        self.recent = Recent(self.limits)
        self.caps = Caps(rounds=settings.max_expansion_rounds, tokens=settings.max_expansion_tokens)
        self.most_bytes = settings.max_body_bytes
        engine.workers.overran = self._overran
        if engine.jobs is not None:
            engine.jobs.told = self._tried
        self._background: set[asyncio.Task[Any]] = set()

    def check_upstream(self, family: Family) -> None:
        """Raise unless somebody answers a family's requests."""
        if family not in self.upstreams and not self.answers_offline:
            raise UpstreamError(
                f"no upstream is set for {OWNERS[family]} requests",
                status=404,
                fix=f"Start the proxy with --{family} {OFFICIAL[family]} (or the setting "
                f"{family}_upstream), or with --offline to have the offline model answer.",
            )

    def send(self, incoming: Incoming, body: bytes) -> AbstractAsyncContextManager[Reply]:
        """Send a body where the request is to go."""
        return incoming.seen.timed(self._sending(incoming, body))

    def _sending(self, incoming: Incoming, body: bytes) -> AbstractAsyncContextManager[Reply]:
        upstream = self.upstreams.get(incoming.route.family)
        if upstream is None:
            return self.offline.send(incoming.path, "POST", {}, body)
        query = _as_events(incoming.query) if incoming.route.streams else incoming.query
        url = address(upstream, quote(incoming.path, safe=_SAFE), query)
        headers = outgoing_headers(upstream, incoming.headers, own_tokens(self.settings).values())
        return self.http.send(url, "POST", {**headers, "accept-encoding": "identity"}, body)

    async def read(self, body: bytes, dialect: str, tenant: str) -> Conversation:
        """Read a request, off the event loop where much of it is new."""
        before = self.recent.before(body, dialect, tenant)
        unread = len(body) - (len(before.source or b"") if before is not None else 0)
        work = partial(self.recent.read, body, dialect, tenant, before)
        return await self.engine.workers.off_loop(unread // READING, work)

    def _overran(self, reason: str) -> None:
        """A content could not be read in time, or within the memory for it: say so."""
        self.telemetry.metrics.overran(reason)
        log.warning(Fields(event="overran", why=reason))

    def _tried(self, attempt: Attempt) -> None:
        """A job of the queue was tried: count it, and say so if it failed."""
        self.telemetry.metrics.tried(attempt)
        if attempt.state == "failed":
            log.warning(Fields(event="job_failed", kind=attempt.kind, why=attempt.error))

    def later(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T | None]:
        """Do something once the client has its answer; `drain` waits for it."""
        task = asyncio.create_task(_told(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def drain(self) -> None:
        """Wait until all that was to be written down is."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)

    async def close(self) -> None:
        """End in order: what was answered is written down, what was learnt is kept."""
        await self.drain()
        await self.tenants.close()
        await self.telemetry.close()


def _as_events(query: str) -> str:
    """Ask Gemini for a stream of events: what the client asked for is made of them."""
    return "&".join(filter(None, (without("alt", query), "alt=sse")))


async def _told(work: Coroutine[Any, Any, _T]) -> _T | None:
    try:
        return await work
    except HoldfastError as error:
        log.warning(Fields(event="not_written", kind=type(error).__name__, why=error.what))
        return None
