"""The proxy's telemetry: a log line, counters and a span per request; two pages.

A request is reported after its client has the response and its turn is recorded, so that telemetry
delays nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.errors import StoreError
from holdfast.fitting import Fitted
from holdfast.settings import Settings
from holdfast.store import Turn
from holdfast.store.deadline import store_deadline
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.metrics import CONTENT_TYPE, Metrics
from holdfast.surfaces.proxy.report import By, report
from holdfast.surfaces.proxy.safety import HEADERS, view_of
from holdfast.surfaces.proxy.seen import (
    CLIENT_LEFT,
    Refusal,
    RequestSeen,
    model_name,
    session_id,
)
from holdfast.surfaces.proxy.spans import configured
from holdfast.surfaces.proxy.tally import Tally

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.service import Service


_MOST_REFUSED = 100
_DOUBT_SECONDS = 2.0
"""Seconds for which a failed request outweighs a check of the store: a full disk, for one, shows
only with a large write."""


class Telemetry:
    """Sees every request from its first byte to its last."""

    def __init__(self, settings: Settings) -> None:
        self._open: set[RequestSeen] = set()
        self.store_fails = False
        """Whether the last request that needed the store, or the last look at it, found it
        unavailable."""
        self._failed_at = float("-inf")
        """When the store last failed a request."""
        self.refused: deque[Refusal] = deque(maxlen=_MOST_REFUSED)
        """Requests that failed before there was a turn to write down, of this process."""
        self.metrics = Metrics(
            lambda: self.open_requests, lambda: sum(record.streams for record in self._open)
        )
        self.tally = Tally()
        """The sums of this process's requests."""
        self.tracing = configured(settings)

    @property
    def open_requests(self) -> int:
        """Requests that are being answered."""
        return len(self._open)

    def begin(self, seen: RequestSeen) -> None:
        """A request has come."""
        self._open.add(seen)

    async def end(self, seen: RequestSeen) -> None:
        """Wait for the turn's record after the response, and report the request."""
        self._open.discard(seen)
        turn = None
        if seen.turn is not None:
            turn = await seen.turn
            seen.store_failed = seen.store_failed or turn is None
        self._tell_of_store(seen, turn)
        # A stream that failed after its first byte began with 200.
        failed = turn is not None and turn.status >= 400
        status = turn.status if turn is not None and failed else seen.status or CLIENT_LEFT
        self.metrics.count(seen, status, turn)
        self.tally.add(seen, status, turn)
        if turn is None and status >= 400:
            model = model_name(seen.model)
            at = seen.began_at / 1e9
            self.refused.append(Refusal(at, seen.tenant, seen.session, model, status, seen.failure))
        log.info(line(seen, status, turn))
        if self.tracing is not None:
            self.tracing.write(seen, status, turn)

    def _tell_of_store(self, seen: RequestSeen, turn: Turn | None) -> None:
        """Say once that the store fails, and once that it is back, however many requests it met."""
        if seen.store_failed:
            self._failed_at = time.monotonic()
        fails = seen.store_failed or (self.store_fails and turn is None)
        self._set_store_fails(fails, seen.store_failure or "see not_written")

    def look_at_store(self, failure: str) -> None:
        """Record the result of a check of the store: the failure, or ""."""
        if failure or time.monotonic() - self._failed_at > _DOUBT_SECONDS:
            self._set_store_fails(bool(failure), failure)

    def _set_store_fails(self, fails: bool, why: str) -> None:
        if fails and not self.store_fails:
            log.error(Fields(event="store_unavailable", why=why))
        elif self.store_fails and not fails:
            log.info(Fields(event="store_available"))
        self.store_fails = fails

    async def close(self) -> None:
        """Write the last spans."""
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)


def line(seen: RequestSeen, status: int, turn: Turn | None) -> Fields:
    """A request as a log line: ids and counts."""
    fields = Fields(
        event="request",
        id=seen.id,
        session=session_id(seen.session),
        family=seen.family,
        dialect=seen.dialect,
        model=model_name(seen.model),
        status=status,
    )
    if turn is not None:
        used = turn.usage
        fields.update(
            tokens=used.input,
            predicted=used.predicted,
            saved=used.saved,
            cached=used.cached,
            edits=len(turn.edits),
            expansions=used.expansions,
            warnings=len(turn.warnings),
        )
    if seen.failure:
        fields["error"] = seen.failure
    if seen.store_failed:
        fields["store"] = "failed"
    fields.update(added_ms=round(seen.added * 1000, 1), ms=round(seen.total * 1000, 1))
    return fields


def context_line(seen: RequestSeen, session: str, fitted: Fitted) -> Fields:
    """Return the decisions about a request's context, for `context_debug`: ids and numbers."""
    actions = Counter(edit.action for edit in fitted.edits)
    return Fields(
        event="context",
        id=seen.id,
        session=session_id(session),
        model=model_name(fitted.count.model),
        limit=fitted.limit,
        counted=fitted.tokens,
        upper=fitted.count.upper,
        left=fitted.limit - fitted.tokens,
        messages=len(fitted.state.asked.messages),
        sent=len(fitted.state.sent.messages),
        edits=",".join(f"{action}:{times}" for action, times in sorted(actions.items())) or "none",
        stored=len(fitted.contents),
        warnings=len(fitted.warnings),
        final=fitted.final,
    )


def routes(service: Service) -> list[BaseRoute]:
    """The pages for programs that watch: `/stats` and `/metrics`."""

    async def stats(request: Request) -> JSONResponse:
        process: dict[str, object] = {}
        try:
            view = await view_of(service, request)
            if view.sees_all:  # counters of the process are of everyone's requests
                process = {"process": await service.telemetry.metrics.figures(service.peers)}
            by: tuple[By, ...] = ("model", "session", "day")
            figures = await report(service.engine.store, await view.scopes(), by)
        except StoreError as error:
            return JSONResponse({"error": error.what} | process, 503, HEADERS)
        return JSONResponse(figures | process, headers=HEADERS)

    async def metrics(request: Request) -> Response:
        if not (await view_of(service, request)).sees_all:
            why = "The counters are of everyone's requests: they need serve_token.\n"
            return Response(why, 403, HEADERS, media_type="text/plain")
        text = await service.telemetry.metrics.text(service.peers)
        # A store that is away, or hangs, is no reason to hide the other counters.
        with suppress(StoreError), store_deadline():
            text += Metrics.queue_text(await service.engine.store.jobs.figures())
        return Response(text, headers=HEADERS, media_type=CONTENT_TYPE)

    return [Route("/stats", stats, methods=["GET"]), Route("/metrics", metrics, methods=["GET"])]
