"""What all requests of a running proxy share.

service: after sending, before exchange.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, ShapeError
from holdfast.faults import Fault, Faults, is_internal
from holdfast.jobs import Attempt
from holdfast.settings import Settings
from holdfast.store.deadline import without_deadline
from holdfast.surfaces.proxy.admission import Admission
from holdfast.surfaces.proxy.allowance import Allowances
from holdfast.surfaces.proxy.health import StoreHealth
from holdfast.surfaces.proxy.labels import Labels
from holdfast.surfaces.proxy.login import Logins
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.recent import Recent
from holdfast.surfaces.proxy.routes import EXAMPLES, NoUpstreamError
from holdfast.surfaces.proxy.telemetry import Telemetry
from holdfast.surfaces.proxy.tenants import RequestCredentials, Tenants
from holdfast.surfaces.proxy.worker_counters import Peers
from holdfast.upstream.expansions import Caps
from holdfast.upstream.network import HttpSending, RequestSender
from holdfast.upstream.upstreams import OFFICIAL, OWNERS, PASSED_ON, Family, Upstreams
from holdfast.wire import Conversation
from holdfast.wire.frame import NoMessagesError
from holdfast.wire.strict import Limits

READING = 16
"""How many times faster JSON is parsed than its contents are cited."""

_T = TypeVar("_T")


class Service:
    """The engines, the upstreams, and the background work after responses."""

    def __init__(
        self,
        engine: Holdfast,
        settings: Settings,
        http: HttpSending,
        offline: RequestSender,
        peers: Peers | None = None,
    ) -> None:
        self.peers = peers
        """The other processes that serve at the same port, if there are any."""
        self.engine = engine
        """That of the store's owner; requests are worked on by those of their tenants."""
        self.upstreams = Upstreams(settings)
        self.labels = Labels(engine.store, engine.scope.user, settings, self.upstreams)
        self.tenants = Tenants(engine, settings, self._label)
        self.allowances = Allowances(settings, engine.store)
        self.logins = Logins(settings, peers=peers)
        self.settings = settings
        self.http = http
        self.offline = offline
        self.answers_offline = settings.serve_offline or not self.upstreams
        """Whether the offline model answers for families without an upstream: where there is any,
        an answer that only quotes would pass for the provider's."""
        self.telemetry = Telemetry(settings)
        self.health = StoreHealth(engine.store, self.telemetry)
        self.admission = Admission()
        self.limits = Limits(max_body_bytes=settings.max_body_bytes)
        self.recent = Recent(self.limits)
        self.caps = Caps()
        self.most_bytes = settings.max_body_bytes
        engine.workers.overran = self._overran
        if engine.parts.jobs is not None:
            engine.parts.jobs.told = self._tried
        self.is_closing = False
        """Whether the proxy is stopping: streams without an end are closed then."""
        self._background: set[asyncio.Task[Any]] = set()

    def check_upstream(self, family: Family) -> None:
        """Raise if no upstream can answer a family's requests, whatever the model."""
        if family not in self.upstreams.by_family and not self.upstreams.has_named:
            self.check_offline(family)

    def check_offline(self, family: Family) -> None:
        """Raise unless the offline model answers where there is no upstream."""
        speaks = family not in PASSED_ON
        if self.answers_offline and speaks:
            return
        offline = ", or with --offline to have the offline model answer" if speaks else ""
        raise NoUpstreamError(
            f"no upstream is set for {OWNERS[family]} requests",
            status=404,
            fix=f"Start the proxy with --{family} {OFFICIAL[family]} (or url in "
            f"[upstreams.{family}] of the settings){offline}.",
        )

    async def read(self, body: bytes, dialect: str, tenant: str) -> Conversation:
        """Read a request, off the event loop where much of it is new."""
        before = self.recent.before(body, dialect, tenant)
        unread = len(body) - (len(before.source or b"") if before is not None else 0)
        work = partial(self.recent.read, body, dialect, tenant, before)
        try:
            return await self.engine.workers.off_loop(unread // READING, work)
        except NoMessagesError as error:
            # The path decides the dialect here: the client can only change the body or the path.
            fix = f"Send a body such as {EXAMPLES[dialect]}"
            raise ShapeError(error.what, where=error.where, fix=fix) from None

    def faults(self, request_id: str = "") -> Faults:
        """Return the faults of a request: each is logged with its fingerprint, and counted."""

        def report(fault: Fault) -> None:
            about = {"id": request_id, "step": fault.step, "kind": fault.kind}
            log.error(Fields(event="bug", **about, place=fault.place))
            self.telemetry.metrics.failed(fault.step)

        return Faults(report)

    def contain(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Log an error that nobody waits for; asyncio would log its text, which may be content."""
        error = context.get("exception")
        self.faults().add("background", error or RuntimeError())

    def _overran(self, reason: str) -> None:
        """Log and count a content that exceeded its time or memory limit."""
        self.telemetry.metrics.overran(reason)
        log.warning(Fields(event="overran", why=reason))

    def _tried(self, attempt: Attempt) -> None:
        """Count an attempt of a queued job, and log it if it failed."""
        self.telemetry.metrics.tried(attempt)
        if attempt.state == "failed":
            log.warning(Fields(event="job_failed", kind=attempt.kind, why=attempt.error))

    def _label(self, tenant: str, who: RequestCredentials, family: Family) -> None:
        """Note the label of a tenant for the dashboard, after its request is answered."""
        self.later(self.labels.note(tenant, who, family))

    def later(
        self, work: Coroutine[Any, Any, _T], faults: Faults | None = None
    ) -> asyncio.Task[_T | None]:
        """Do something once the client has its answer; `drain` waits for it.

        It may wait for the store longer than a request may. An internal error is one of `faults`,
        those of the request, if it is one's.
        """
        reported = _told(work, self.faults() if faults is None else faults)
        task = asyncio.create_task(reported, context=without_deadline())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def drain(self) -> None:
        """Wait until all that was to be written down is."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)
            # Finished tasks leave the set by a callback in the loop. Since Python 3.12 `gather` of
            # finished tasks returns without a turn of the loop, so that this one would never end.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Shut down in order: write the records of all responses, then store the calibration."""
        await self.health.close()
        await self.drain()
        await self.tenants.close()
        await self.telemetry.close()


async def _told(work: Coroutine[Any, Any, _T], faults: Faults) -> _T | None:
    with faults.caught("record"):
        try:
            return await work
        except HoldfastError as error:
            if is_internal(error):
                raise
            log.warning(Fields(event="not_written", kind=type(error).__name__, why=error.what))
    return None
