"""The proxy as a program: everything put together, started, and ended in order.

server: the last word of the proxy. The engine is opened before the first request is taken and
closed after the last answer is written down, so that a store that cannot be opened is an error
with a next step, not a server that fails later.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.cite import cite
from holdfast.engine import Holdfast
from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.store.deadline import store_deadline
from holdfast.surfaces.proxy import dashboard, preflight, telemetry, tenants
from holdfast.surfaces.proxy.app import ProxyApp
from holdfast.surfaces.proxy.connections import (
    AT_ONCE,
    BACKLOG,
    KEEP_ALIVE_SECONDS,
    Connection,
    Connections,
    Places,
    accept,
    most_connections,
    new_connection,
    raise_descriptors,
)
from holdfast.surfaces.proxy.gate import HEALTH, Gate
from holdfast.surfaces.proxy.heap import (
    IdleCollector,
    free_closed_transports,
    give_back,
    use_few_heaps,
)
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.offline import OfflineSending
from holdfast.surfaces.proxy.routes import BARE, PREFIXES
from holdfast.surfaces.proxy.safety import HEADERS
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.worker_counters import Peers
from holdfast.upstream.network import HttpSending
from holdfast.wire.strict import Limits

DRAIN_SECONDS = 600
"""Seconds that open responses get after SIGTERM: long responses of reasoning models take minutes. A
second signal ends them at once, and service managers have their own timeout."""
_LAST_SECONDS = 2.0
"""How long requests may take to end after they were cancelled."""
_READ_BYTES = 8_192
"""Of an upstream at once: parsed in one step, 1,400 chunks of one byte take 5 ms. Clients have
their own measure: see connections."""
PAGES: tuple[Callable[[Service], list[BaseRoute]], ...] = (dashboard.routes, telemetry.routes)
"""The proxy's own pages: each function returns its routes for a service."""


@asynccontextmanager
async def opened(settings: Settings, peers: Peers | None = None) -> AsyncIterator[Service]:
    """All that a running proxy needs, and its orderly end; `peers` are its other workers."""
    limits = Limits(max_body_bytes=settings.max_body_bytes)
    async with (
        Holdfast.open(settings=settings) as engine,
        HttpSending(idle_seconds=settings.upstream_idle_seconds) as http,
    ):
        service = Service(engine, settings, http, OfflineSending(limits=limits), peers)
        asyncio.get_running_loop().set_exception_handler(service.contain)
        try:
            await service.tenants.load_secret()
            yield service
        finally:
            await service.close()


def application(service: Service) -> Starlette:
    """Return the application; the gate covers every route, also those of pages."""
    routes: list[BaseRoute] = [
        Route(HEALTH, partial(_health, service), methods=["GET"]),
        *(route for page in PAGES for route in page(service)),
    ]
    gate = Middleware(Gate, settings=service.settings, logins=service.logins, faults=service.faults)
    providers = Middleware(_Providers, proxy=ProxyApp(service))
    places = Middleware(
        Places, settings=service.settings, admission=service.admission, faults=service.faults
    )
    app = Starlette(routes=routes, middleware=[places, gate, providers])
    app.router.redirect_slashes = False  # a client would send its key a second time
    return app


class _Providers:
    """Leads the providers' paths to the proxy; a router would look through every page first."""

    def __init__(self, app: ASGIApp, proxy: ProxyApp) -> None:
        self._pages = app
        self._proxy = proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(PREFIXES) or path in BARE:
            await self._proxy(scope, receive, send)
            return
        # A page of a large store may take seconds; none of one that hangs.
        with store_deadline(math.inf):
            await self._pages(scope, receive, send)


async def _health(service: Service, _: Request) -> PlainTextResponse:
    """Whether requests are answered; with a store that fails, only if that is the setting."""
    if await service.health.is_available():
        return PlainTextResponse("ok\n", headers=HEADERS)
    answers = service.settings.on_store_failure == "pass"
    text = "ok, but the store is unavailable\n" if answers else "the store is unavailable\n"
    return PlainTextResponse(text, 200 if answers else 503, HEADERS)


class Server(uvicorn.Server):
    """Serves until `stop` is called; signals are its caller's business."""

    def __init__(self, service: Service, ready: Callable[[], None]) -> None:
        self._service = service
        super().__init__(
            uvicorn.Config(
                application(service),
                lifespan="off",  # the engine is open already
                ws="none",
                log_config=None,
                log_level="critical",  # its tracebacks might hold content; ours do not
                access_log=False,
                server_header=False,
                # uvicorn trusts x-forwarded-for from local clients: with another address in each
                # request nobody would ever have to wait after wrong tokens.
                proxy_headers=False,
                # Its type is int, and it is handed to asyncio as it is.
                timeout_keep_alive=KEEP_ALIVE_SECONDS,  # type: ignore[arg-type]
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._ready = ready
        self.connections = Connections(most_connections(raise_descriptors()))
        self._accepting: list[asyncio.Task[None]] = []
        self._collector = IdleCollector()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: uvicorn would raise them again before the store is closed."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests, and report it."""
        await super().startup(sockets=[])  # connections are taken here: see `accept` for why
        # Of workers that share a socket, the first to wake would take all that wait.
        at_once = AT_ONCE if self._service.peers is None else 1
        for listener in sockets or ():
            work = accept(listener, self._connection, self.connections, at_once)
            self._accepting.append(asyncio.create_task(work))
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Collect garbage while no request is under way; uvicorn calls it ten times a second."""
        self._collector.tick(is_idle=not self.server_state.tasks)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets=sockets)
        await self._end_requests()

    async def _end_requests(self) -> None:
        """Cancel the requests that are still open, and wait until each has handed in its record.

        uvicorn leaves them running after a second signal. They would end after the store is closed,
        and the records of answers that a provider bills would be lost.
        """
        if tasks := set(self.server_state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_LAST_SECONDS)

    def _connection(self) -> Connection:
        return new_connection(self.config, self.server_state, self.connections)

    def stop(self) -> None:
        """Take no more requests and let open answers end; called twice, drop them."""
        if not self.should_exit and (open_requests := self._service.telemetry.open_requests):
            log.info(Fields(event="stopping", open=open_requests, most_seconds=DRAIN_SECONDS))
        self._service.is_closing = self.connections.is_closing = True
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(settings: Settings, *, beside_others: bool = False) -> socket.socket:
    """A socket at the address of the settings, or SettingsError with what to do.

    With `beside_others`, sockets of this user may listen there together: Linux deals connections
    out among them.
    """
    host, port = settings.serve_host, settings.serve_port
    tenants.check(settings)
    preflight.check_access(settings)
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
        family, kind, protocol, _, address = addresses[0]
        # asyncio disables Nagle's algorithm only on a socket that reports TCP.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from error
    try:
        if os.name == "posix":  # elsewhere it would let two programs share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if beside_others:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> SettingsError:
    return SettingsError(
        f"the proxy cannot listen there: {error.strerror}",
        where=f"{host}:{port}",
        fix="Choose another port with --port (under make: `make run PORT=…`; 0: any that is free), "
        "or end what uses this one.",
    )


class ProxyAddresses(NamedTuple):
    """Where a proxy listens, and where it sends requests."""

    url: str
    upstreams: dict[str, str]
    """Addresses by family or name."""
    answers_offline: bool = False
    """Whether the offline model answers for the others; else they are refused."""


def whereabouts(service: Service, listener: socket.socket) -> ProxyAddresses:
    """Return the addresses of a proxy that starts."""
    to = service.upstreams.addresses()
    return ProxyAddresses(base_url(listener), to, service.answers_offline)


class ProxyWorker(NamedTuple):
    """One of several processes that serve together: see `crew`."""

    peers: Peers
    ready: Callable[[], None]
    lifeline: int
    """A descriptor that comes to its end when the parent does."""


def serve(settings: Settings, *, started: Callable[[ProxyAddresses], None]) -> None:
    """Run the proxy in this process until a signal stops it; `started` gets its addresses."""
    use_few_heaps()
    with listen(settings) as listener:
        asyncio.run(_serve(settings, listener, started))
    log.info(Fields(event="stopped"))


async def _serve(
    settings: Settings, listener: socket.socket, started: Callable[[ProxyAddresses], None]
) -> None:
    async with opened(settings) as service:
        server = _ready_to_run(service, lambda: started(whereabouts(service, listener)))
        with stopped_by(server, signal.SIGINT, signal.SIGTERM):
            await server.serve(sockets=[listener])


async def work(settings: Settings, listener: socket.socket, worker: ProxyWorker) -> None:
    """Serve as one of several processes, until the parent stops it or is gone."""
    async with (
        opened(settings, worker.peers) as service,
        worker.peers.answering(service.telemetry.metrics.counted),
    ):
        server = _ready_to_run(service, worker.ready)
        loop = asyncio.get_running_loop()

        def orphaned() -> None:
            loop.remove_reader(worker.lifeline)  # its end can be read again and again
            server.stop()

        loop.add_reader(worker.lifeline, orphaned)
        with stopped_by(server, signal.SIGTERM):
            await server.serve(sockets=[listener])


def _ready_to_run(service: Service, started: Callable[[], None]) -> Server:
    """A server for a process that does nothing else."""
    loop = asyncio.get_running_loop()

    def ready() -> None:
        started()
        loop.run_in_executor(None, warm_up)

    server = Server(service, ready)
    free_closed_transports()
    _spare_what_stays()
    _let_the_loop_run()
    return server


def _spare_what_stays() -> None:
    """Let the collector look at what requests leave, and seldom: a fifth of a request's time."""
    gc.collect()
    gc.freeze()
    # A full collection looks at every message of every session, and holds the loop for a fifth of
    # a second after a request of 100,000, or with 1,000 sessions: in a row of 30 huge requests one
    # held a ping for 0.6 s. So it runs while no request is under way (`IdleCollector`), and else
    # once in some two million small requests. Requests leave no cycles
    # (tests/surfaces/proxy/test_left_behind.py).
    gc.set_threshold(2_000, 10, 20_000)


def _let_the_loop_run() -> None:
    """Keep each step of the loop short, and its waits for threads that are busy."""
    # After each system call the loop waits this long for a busy thread: some five times for one
    # ping, and for each request before it. With a fifth of this, requests of 10 KB cost 18 % more:
    # threads switched twice as often.
    sys.setswitchinterval(0.001)
    transport = getattr(asyncio.selector_events, "_SelectorTransport", None)
    if transport is not None:
        transport.max_size = _READ_BYTES


def warm_up() -> None:
    """Load the vocabulary and the patterns that the first citation needs.

    They are built on first use, those for non-ASCII letters separately, and block the event loop
    for 150 ms. The reader process, which takes 50 MB, starts with the first large content instead.
    """
    cite("Some 12 words, naïve ones, of a text that is long enough to be cited. " * 400)
    give_back()  # 5 MB: the vocabulary is unpacked on the way


@contextmanager
def stopped_by(server: Server, *signals: signal.Signals) -> Iterator[None]:
    """Have signals stop a server inside: the first lets open answers end, the second drops them."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # on Windows, Ctrl-C ends the loop
        for number in signals:
            loop.add_signal_handler(number, server.stop)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for number in signals:
                loop.remove_signal_handler(number)


def base_url(listener: socket.socket) -> str:
    """The address of a listening socket, as clients write it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
