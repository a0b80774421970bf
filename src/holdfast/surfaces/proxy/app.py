"""The providers' paths: every request is routed and answered, even after internal errors.

Only this module turns errors into responses in the client's dialect. Internal errors are reported
by their place, never by their text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

from holdfast.errors import (
    BudgetExceededError,
    ContextOptimizationError,
    HoldfastError,
    LimitError,
    PrivacyError,
    SettingsError,
    StoreError,
    UnmaskedError,
    WireError,
)
from holdfast.faults import Faults
from holdfast.privacy import check_unmasked
from holdfast.store.deadline import store_deadline
from holdfast.surfaces.proxy.admission import OverloadedError
from holdfast.surfaces.proxy.allowance import AllowanceError
from holdfast.surfaces.proxy.delivery import Outcome, received
from holdfast.surfaces.proxy.dispatch import Dispatch
from holdfast.surfaces.proxy.encodings import (
    ACCEPTED,
    UnknownEncodingError,
    unpacked,
    without_encoding,
)
from holdfast.surfaces.proxy.exchange import RequestHandler
from holdfast.surfaces.proxy.heap import LARGE_BYTES, give_back_after
from holdfast.surfaces.proxy.incoming_request import IncomingRequest, Receive, TooSlowError, Upload
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.models import OFFLINE_NAME, lists_models, model_list
from holdfast.surfaces.proxy.passing_calls import (
    ASGIScope,
    ClientRequest,
    guarded_call,
    passing_call,
    raw_path,
)
from holdfast.surfaces.proxy.request_preparer import UNEDITED
from holdfast.surfaces.proxy.routes import (
    Route,
    WrongMethodError,
    WrongPathError,
    family_of,
    meant,
    normal_path,
    only_address,
    route,
    unanswered,
)
from holdfast.surfaces.proxy.seen import RequestSeen
from holdfast.surfaces.proxy.service import READING, Service
from holdfast.surfaces.proxy.switches import PREFIX, Switches, read_switches
from holdfast.surfaces.proxy.tenants import load_key, own_tokens
from holdfast.surfaces.proxy.token_count import count_answer
from holdfast.surfaces.proxy.upstream_calls import UpstreamCall
from holdfast.surfaces.proxy.upstreams import (
    address,
    outgoing_headers,
    returned_headers,
)
from holdfast.upstream.network import BrokenOffError, UpstreamError, UpstreamReply
from holdfast.upstream.upstreams import DIALECT_OF, Family, Upstream
from holdfast.wire import read
from holdfast.wire.responses import OVERFLOW, ArrayWriter, error_body, overflow_message

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Sending = AbstractAsyncContextManager[UpstreamReply]

TAKING_SECONDS = 300.0
"""How long a client may leave a piece of its answer untaken: its upstream is held meanwhile."""

_TURN_SECONDS = 0.005
"""Seconds that one response or body may use the loop before others get a turn."""
_AT_ONCE = 262_144
"""Bytes of a stream that are sent in one step: each is copied twice on its way to the socket."""
HANG_UP = "holdfast.hang_up"
"""In the state of a scope: breaks the connection, so that its client sees no answer at all."""


def dialect_of(method: str, path: str, headers: Mapping[str, str]) -> str:
    """The dialect in which a client understands errors; `headers` have names in lower case."""
    if (found_route := route(method, meant(path) or path)) is not None:
        return found_route.dialect
    return DIALECT_OF[family_of(path, frozenset(headers)) or "openai"]


class ProxyApp:
    """Answers the providers' paths."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Answer one request; a client that leaves takes its upstream call with it."""
        upload = Upload(receive)
        work = asyncio.create_task(self._answer(scope, upload, send))
        watch = asyncio.create_task(upload.until_gone())
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if watch.done() and (failure := watch.exception()) is not None:
                self.service.faults("").add("background", failure)
                await work  # it failed, so the client's state is unknown
        finally:
            watch.cancel()
            if not work.done():
                work.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await work

    async def _answer(self, scope: ASGIScope, upload: Upload, send: Send) -> None:
        """Answer a request; an error before the first byte is an answer too."""
        headers = tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"])
        by_name = dict(headers)
        record = RequestSeen(traceparent=by_name.get("traceparent", ""))
        faults = self.service.faults(record.id)
        asked = ClientRequest(scope, headers, by_name, None, upload, record)
        with faults.caught("route"):
            asked = self._routed(asked)

        async def seen_send(message: MutableMapping[str, Any]) -> None:
            with faults.caught("telemetry"):
                record.sends(message)
            began = time.perf_counter()
            try:
                async with asyncio.timeout(TAKING_SECONDS):
                    await send(message)
            except OSError:  # includes timeouts: the client is gone
                raise asyncio.CancelledError from None
            record.client += time.perf_counter() - began

        try:
            await self._served_or_passed(asked, faults, seen_send)
        except BrokenOffError as error:
            record.failed_with(error)
            why = Fields(event="broke_off", id=record.id, upstream=error.where, why=error.what)
            log.warning(why)
            if not record.status and not _hung_up(scope, record, error):
                await _send(seen_send, _told(error, record.dialect))
        except HoldfastError as error:
            record.failed_with(error)
            if not record.status:
                await _send(seen_send, _told(error, record.dialect))
        finally:
            with faults.caught("telemetry"):
                record.ended()
                reporting = self.service.telemetry.end(record)
                self.service.later(
                    reporting if record.size < LARGE_BYTES else give_back_after(reporting)
                )

    def _routed(self, asked: ClientRequest) -> ClientRequest:
        """Return the request with its route, and note whose API it asks."""
        method, path, record = asked.scope["method"], asked.scope["path"], asked.seen
        self.service.telemetry.begin(record)
        found_route = route(method, path)
        record.dialect = (
            found_route.dialect if found_route else dialect_of(method, path, asked.by_name)
        )
        family = found_route.family if found_route else family_of(path, frozenset(asked.by_name))
        record.family = family or ""
        return asked._replace(route=found_route)

    async def _served_or_passed(self, asked: ClientRequest, faults: Faults, send: Send) -> None:
        """Answer a request; after an internal error before the first byte, pass it on unedited."""
        if not faults:
            with faults.caught("request"), store_deadline():
                await self._served(asked, faults, send)
                return
        if asked.seen.status:
            return
        with faults.caught("request"):
            await self._unedited(asked, faults, send)
            return
        if not asked.seen.status:
            text = f"Holdfast has a bug: {'; '.join(faults.warnings)}. Please report it."
            await _send(send, Outcome(500, _JSON, error_body(asked.seen.dialect, 500, text)))

    async def _served(self, asked: ClientRequest, faults: Faults, send: Send) -> None:
        switched = any(name.startswith(PREFIX) for name in asked.by_name)
        switches = read_switches(asked.by_name) if switched else Switches()
        managed = self.service.settings.token_management_enabled and not switches.bypass
        if asked.route is None or not managed:
            await self._pass_through(asked, send)
            return
        self.service.check_upstream(asked.route.family)
        await self._admitted(asked, faults)
        try:
            incoming = await self._incoming(asked, asked.route, switches)
            array = ArrayWriter() if incoming.wants_array else None
            if incoming.route.counts:
                outcome = await count_answer(self.service, incoming)
            else:
                outcome = await RequestHandler(self.service, incoming, faults).run()
        finally:
            with faults.caught("admission"):
                asked.seen.release_slot()
        await _send(send, _with_warnings(outcome, faults), array)

    async def _admitted(self, asked: ClientRequest, faults: Faults) -> None:
        """Wait for a slot; after an internal error the request continues without one.

        Raises:
            OverloadedError: the proxy is overloaded.
        """
        with faults.caught("admission"):
            tenant = load_key(asked.by_name.items(), asked.query, self.service.settings)
            asked.seen.slot = await self.service.admission.enter(tenant, asked.by_name)

    async def _unedited(self, asked: ClientRequest, faults: Faults, send: Send) -> None:
        """Forward the client's own bytes and the response, with as little of our code as possible.

        A request to a model may contain text that a privacy policy masks.
        """
        if asked.scope["method"] == "POST":
            check_unmasked(self.service.settings.privacy_policy)
        family = asked.route.family if asked.route is not None else None
        family = family or family_of(asked.scope["path"], frozenset(asked.by_name))
        upstream = self.service.upstreams.by_family.get(family) if family is not None else None
        if upstream is None:
            method, path = asked.scope["method"], asked.scope["path"]
            raise unanswered(method, path, family, asked.by_name.get("host", ""))
        warnings = (*faults.warnings, UNEDITED)
        await self._forward(asked, upstream, send, more={WARNING: "; ".join(warnings)})

    async def _by_model(self, asked: ClientRequest, there: Route, send: Send) -> None:
        """Send a request unedited to the upstream for its model."""
        service = self.service
        incoming = await self._incoming(asked, there, Switches())
        work = partial(read, incoming.body, there.dialect, limits=service.limits)
        request = await service.engine.workers.off_loop(len(incoming.body) // READING, work)
        dispatch = Dispatch(service, incoming, there.model or request.model or "")
        async with dispatch.send(request, incoming.body) as reply:
            returned = returned_headers(reply.headers, changed=False) | dispatch.headers
            await _send(send, Outcome(reply.status, returned, reply.chunks()))

    async def _models(
        self, asked: ClientRequest, family: Family, upstream: Upstream | None
    ) -> Outcome | None:
        """The vendor's models and those of the settings, in one list; None if there is no need."""
        service = self.service
        names = service.upstreams.names()
        if upstream is None:
            names += [OFFLINE_NAME] * service.answers_offline
            return Outcome(200, _JSON, model_list(family, names)) if names else None
        if not names:
            return None
        url = address(upstream, asked.scope["path"], asked.query)
        headers = outgoing_headers(upstream, asked.headers, own_tokens(service.settings).values())
        headers["accept-encoding"] = "identity"
        path = normal_path(asked.scope["path"])
        sending = asked.calls(service).send(UpstreamCall(upstream, "GET", path, url, headers, b""))
        async with asked.seen.timed(sending) as reply:
            listing = await received(reply, service.most_bytes)
        if listing.status != 200:
            return Outcome(listing.status, listing.headers, listing.body)
        body = model_list(family, names, listing.body)
        return Outcome(200, listing.headers, body)

    async def _incoming(
        self, asked: ClientRequest, there: Route, switches: Switches
    ) -> IncomingRequest:
        """The request with its whole body, as its client wrote it before packing it."""
        most = self.service.settings.max_body_bytes
        with asked.seen.waiting_for_client():
            body = await asked.upload.whole(most)
        asked.seen.size = len(body)
        headers = asked.headers
        if "content-encoding" in asked.by_name:
            named = ",".join(value for name, value in headers if name == "content-encoding")
            body = await asyncio.to_thread(unpacked, body, named, most)
            headers = without_encoding(headers)
        path = normal_path(asked.scope["path"])
        return IncomingRequest(
            there, path, raw_path(asked.scope), asked.query, headers, body, switches, asked.seen
        )

    async def _pass_through(self, asked: ClientRequest, send: Send) -> None:
        """Send a request on and its answer back, byte for byte, as they come: of any size."""
        names = asked.by_name
        path, method = asked.scope["path"], asked.scope["method"]
        if hint := meant(path):
            raise WrongPathError(
                f"there is nothing here: {hint} was meant",
                status=404,
                where=path[:100],
                fix="The base URL of OpenAI's clients ends with /v1, that of Anthropic's does not.",
            )
        family = asked.route.family if asked.route else family_of(path, frozenset(names))
        upstream = self.service.upstreams.by_family.get(family) if family is not None else None
        if asked.route is not None and (upstream is None or self.service.upstreams.has_named):
            await self._by_model(asked, asked.route, send)
            return
        models = None
        if lists_models(method, path) and family is not None:
            models = await self._models(asked, family, upstream)
        if models is not None:
            await _send(send, models)
            return
        # A family's public API does not have the paths of its subscriptions.
        if upstream is None or (upstream.is_official and only_address(path)):
            raise unanswered(method, path, family, names.get("host", ""))
        await self._forward(asked, upstream, send, asked.seen.timed)

    async def _forward(
        self,
        asked: ClientRequest,
        upstream: Upstream,
        send: Send,
        timed: Callable[[_Sending], _Sending] = lambda sending: sending,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Send a request to an upstream and its answer back; `more` are headers of the answer."""
        calls = asked.calls(self.service)
        is_guarded = calls.is_guarded(upstream)
        if is_guarded:
            call = await guarded_call(self.service, asked, upstream, calls)
        else:
            call = passing_call(self.service, asked, upstream)
        sending = calls.send(call, raw=True)
        try:
            async with timed(sending) as reply:
                # A body is decompressed before it is read.
                returned = returned_headers(reply.headers, changed=is_guarded) | dict(more or {})
                await _send(send, Outcome(reply.status, returned, reply.chunks()))
        except UpstreamError as error:
            raise asked.upload.failure or error from error


_JSON = {"content-type": "application/json"}
WARNING = f"{PREFIX}warning"


def _told(error: HoldfastError, dialect: str) -> Outcome:
    """An error as an answer, in the client's dialect."""
    status = status_of(error)
    headers = _JSON
    if isinstance(error, UnknownEncodingError):
        headers = _JSON | {"accept-encoding": ACCEPTED}  # as RFC 9110, 15.5.16, asks for
    elif isinstance(error, WrongMethodError):
        headers = _JSON | {"allow": "POST"}  # as RFC 9110, 15.5.6, asks for
    elif isinstance(error, OverloadedError):
        headers = _JSON | {"retry-after": str(error.retry_after)}
    elif isinstance(error, AllowanceError):
        headers = _JSON | {"retry-after": str(error.retry_seconds)}
    message, kind = str(error), ""
    if isinstance(error, BudgetExceededError):
        kind = OVERFLOW
        message = f"{overflow_message(dialect, error.planned, error.limit)} {message}"
    return Outcome(status, headers, error_body(dialect, status, message, kind))


def _with_warnings(outcome: Outcome, faults: Faults) -> Outcome:
    """Return the outcome with headers that report the internal errors of the request."""
    if not faults:
        return outcome
    warnings = filter(None, (*faults.warnings, outcome.headers.get(WARNING, "")))
    return outcome._replace(headers=outcome.headers | {WARNING: "; ".join(warnings)})


def _hung_up(scope: ASGIScope, seen: RequestSeen, error: UpstreamError) -> bool:
    """Break the connection as the upstream did, if the server can; a stream breaks by itself."""
    hang_up = scope.get("state", {}).get(HANG_UP)
    if hang_up is None:
        return False
    hang_up()
    seen.status = error.status
    return True


async def _send(send: Send, outcome: Outcome, array: ArrayWriter | None = None) -> None:
    """Give the client its answer; the next piece is fetched when it has taken the last."""
    body = outcome.body
    headers = dict(outcome.headers)
    if isinstance(body, bytes):
        headers["content-length"] = str(len(body))
        array = None
    elif array is not None:
        headers["content-type"] = "application/json"
    raw_headers = [
        (k.encode("latin-1"), v.encode("latin-1", "replace")) for k, v in headers.items()
    ]
    start = {"type": "http.response.start", "status": outcome.status, "headers": raw_headers}
    if isinstance(body, bytes):
        await send(start)
        await send({"type": "http.response.body", "body": body})
        return
    try:
        # before the head: after a failure up to here the request can still be sent unedited
        pieces = aiter(body)
        await send(start)
        since = time.monotonic()
        async for piece in pieces:
            if time.monotonic() - since > _TURN_SECONDS:  # other requests have their turn
                await asyncio.sleep(0)
                since = time.monotonic()
            for out in array.write([piece]) if array is not None else (piece,):
                for at in range(0, len(out), _AT_ONCE):
                    part = out[at : at + _AT_ONCE]
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        last = array.close() if array is not None else b""
        await send({"type": "http.response.body", "body": last})
    finally:
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()


_STATUS: tuple[tuple[type[HoldfastError], int], ...] = (
    (TooSlowError, 408),
    (UnknownEncodingError, 415),
    (LimitError, 413),
    (WireError, 400),
    (BudgetExceededError, 400),
    (ContextOptimizationError, 400),
    (UnmaskedError, 500),
    (PrivacyError, 400),
    (SettingsError, 400),  # while a request is answered: the model's name in it is none
    (AllowanceError, 429),
    (StoreError, 503),
)


def status_of(error: HoldfastError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, UpstreamError | OverloadedError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 502)
