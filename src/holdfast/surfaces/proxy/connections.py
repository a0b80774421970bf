"""Connections: their maximum number, their timeouts, and the handling of a full process.

A slot belongs to a request, never to an idle connection: uvicorn waits for headers without limit,
so a client that sends one byte a second (slowloris), or none, would keep its slot for ever. The
longest idle connection is closed when slots run out.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
import sys
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from holdfast.faults import Faults
from holdfast.settings import Settings
from holdfast.surfaces.proxy.admission import Admission, OverloadedError
from holdfast.surfaces.proxy.app import HANG_UP
from holdfast.surfaces.proxy.gate import headers_of, refuse
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.surfaces.proxy.routes import BARE, PREFIXES
from holdfast.surfaces.proxy.tenants import load_key

HEADER_SECONDS = 20.0
"""From the first byte of a request, or from the connection, to the last byte of its headers."""
KEEP_ALIVE_SECONDS = 120.0
"""Seconds that a connection may wait for its next request: longer than clients and gateways keep
theirs (undici 4, httpx 5, aiohttp 15, ALB 60, nginx 75, Go 90), so that the client closes first.
With uvicorn's 5 seconds, requests arrived at a connection that was being closed, and were reset."""
BACKLOG = 4_096
"""Connections that may wait to be taken: all clients may come at once, after a restart."""
SPARE = 64
"""Connections above the limit that are still accepted, to answer that the proxy is full."""
_OTHER_DESCRIPTORS = 128
"""File descriptors of the store, the log and worker processes."""
_MOST_DESCRIPTORS = 65_536
MOST_CONNECTIONS = 10_000
"""The limit even if the system allows more: each connection costs some 20 KB before its first byte.
"""
AT_ONCE = 16
"""Connections that are taken before others have their turn: clients may come without end. Each has
a request, which takes half a millisecond to read: with 64 at once a ping took twice as long."""
_PAUSE_SECONDS = 1.0
_TOLD_SECONDS = 60.0
_STATE = "holdfast.connection"
_FULL = 503
_RETRY = (b"retry-after", b"1")
_CLOSE = (b"connection", b"close")
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def raise_descriptors() -> int:
    """Let this process open as many files as the system allows it; how many that are."""
    if sys.platform == "win32":
        return 2 * MOST_CONNECTIONS
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (ValueError, OSError):  # macOS allows fewer than it reports
            return soft
        return target
    return target if soft == resource.RLIM_INFINITY else soft


def most_connections(descriptors: int) -> int:
    """Return how many requests may be open; each needs a second connection, to its upstream."""
    possible = max(1, (descriptors - _OTHER_DESCRIPTORS - SPARE) // 2)
    return min(MOST_CONNECTIONS, possible)


class Connections:
    """Those that are open: which have a request, and which wait for their client."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.is_closing = False
        """Whether the proxy is stopping."""
        self.busy: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}
        """In the order in which they began to wait."""

    def __len__(self) -> int:
        return len(self.busy) + len(self._waiting)

    @property
    def closes_next(self) -> bool:
        """Whether the connection is closed after its response, which then has `connection: close`.

        Otherwise an idle connection would be closed without notice to make room, and the next
        request on it would be lost.
        """
        return self.is_closing or len(self) > self.most

    def wait(self, connection: Connection) -> None:
        """A connection has no request, or none any more."""
        self.busy.discard(connection)
        self._waiting[connection] = None
        if len(self) > self.most + SPARE:
            self.make_room()

    def begin(self, connection: Connection) -> bool:
        """A request has come; whether there is a place for it."""
        self._waiting.pop(connection, None)
        self.busy.add(connection)
        return len(self.busy) <= self.most

    def end(self, connection: Connection) -> None:
        """A connection is closed."""
        self.busy.discard(connection)
        self._waiting.pop(connection, None)

    def make_room(self) -> None:
        """Close the connection that waits longest: HTTP lets a server do so at any time."""
        longest = next(iter(self._waiting), None)
        if longest is not None:
            self.end(longest)
            longest.hang_up()


FIRST_READ = 2_048
"""Bytes of a connection's first read: the headers of most clients."""
LEAST_READ = 512
"""Bytes read at once of a body in tiny chunks: 85 of one byte, which h11 takes a millisecond for.
A ping needs three steps of the loop, and so waits for three such reads."""
MOST_READ = 65_536
_MANY_LINES = 128
"""Of one read: a chunk has two, its size and its end."""


_CLOSED = asyncio.Protocol()
"""The protocol of a closed connection."""


class Connection(asyncio.Protocol):
    """HTTP on one connection, with timeouts for the client."""

    def __init__(self, http: asyncio.Protocol, among: Connections) -> None:
        self._http = http
        self._among = among
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = False
        """Whether a part of the headers has come."""
        self._requests = 0
        self._read_bytes = FIRST_READ
        self._comes_in_chunks = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._transport = transport
        self._read_at_once(FIRST_READ)
        self._http.connection_made(transport)
        self._await_headers()
        self._among.wait(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request; its headers have their time from the first one on."""
        if not self._requests:
            self._began = True
            if self._timer is None:  # the connection was kept, and this is its next request
                self._await_headers()
        try:
            self._http.data_received(data)
        except h11.LocalProtocolError:
            # uvicorn answers 400 to bytes after a request whose response has begun, which h11
            # forbids.
            if self._transport is not None:
                self._transport.close()
            return
        self._pace(data)

    def _pace(self, data: bytes) -> None:
        """Read less at once where chunks are tiny, more where they are not.

        h11 takes 10 microseconds for a chunk of any size, and all that was read in one step of the
        loop. 8 KB of one-byte chunks were 20 ms for each of three steps that a ping takes: pings
        came faster than they were answered, and the last of them waited for two seconds.
        """
        if self._comes_in_chunks and data.count(b"\r\n") > _MANY_LINES:
            self._read_at_once(max(self._read_bytes // 2, LEAST_READ))
        elif self._requests and len(data) == self._read_bytes < MOST_READ:
            self._read_at_once(self._read_bytes * 2)

    def _read_at_once(self, size: int) -> None:
        self._read_bytes = size
        if self._transport is not None:
            self._transport.max_size = size  # type: ignore[attr-defined]  # of asyncio's own

    @property
    def closes_next(self) -> bool:
        """Whether the connection is closed after this answer."""
        return self._among.closes_next

    def begin(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """A request has come whole but for its body; whether there is a place for it."""
        self._stop_waiting()
        self._comes_in_chunks = any(name == b"transfer-encoding" for name, _ in headers)
        self._requests += 1  # of pipelined requests, one begins before the last has quite ended
        return self._among.begin(self)

    def ended(self) -> None:
        """Handle the end of a response; uvicorn closes connections that are idle for too long."""
        self._requests -= 1
        if not self._requests:
            self._read_at_once(FIRST_READ)
            if self in self._among.busy:
                self._among.wait(self)

    def hang_up(self) -> None:
        """Break the connection."""
        if self._transport is not None:
            self._transport.close()

    def eof_received(self) -> bool | None:
        """Handle the end of the client's data."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """The client takes nothing for now."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """The client takes more."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._stop_waiting()
        self._among.end(self)
        self._http.connection_lost(exc)
        self._let_go()

    def _let_go(self) -> None:
        """Break what refers to itself, so that the memory is free at once.

        A connection outlives the collector's first two looks, and the third comes once in 100,000
        requests: until then each that was closed kept 9 KB. HTTP knows its request, whose state
        knows this connection, which knows HTTP.
        """
        self._http = _CLOSED
        self._transport = None

    def _await_headers(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._too_slow)

    def _stop_waiting(self) -> None:
        self._began = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        # An idle client would take this for the response to its next request (RFC 9110, 15.5.9).
        if self._began and isinstance(self._transport, asyncio.WriteTransport):
            self._transport.write(_TOO_SLOW)
        self.hang_up()


def new_connection(config: Config, state: ServerState, among: Connections) -> Connection:
    """HTTP whose requests can break their connection: ASGI itself has no word for that.

    Always in h11, also where httptools is installed: that has no bound for headers, and how a
    request is read must not depend on what else is.
    """
    words: dict[str, Any] = {}
    connection = Connection(H11Protocol(config, state, app_state=words), among)
    words.update({_STATE: connection, HANG_UP: connection.hang_up})
    return connection


class Places:
    """Admits requests while there are slots; others are refused in their dialect."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        admission: Admission,
        faults: Callable[[], Faults],
    ) -> None:
        self.app = app
        self._settings = settings
        self._admission = admission
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with a time to retry."""
        connection = scope.get("state", {}).get(_STATE)
        if connection is None:
            await self.app(scope, receive, send)
        elif connection.begin(scope["headers"]):
            try:
                await self._answer(scope, receive, _with_notice(connection, send))
            finally:
                connection.ended()
        else:
            await _discard_body(receive)
            why = "The proxy has no place for another request: try again, or raise its ulimit -n."
            await refuse(scope, _FULL, why, send, _RETRY, _CLOSE)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; if the proxy is overloaded, with as little work as can be.

        The connection is kept, for the client to come again on it: so the body is read, else its
        bytes would pass for a request that does not come to its end, and be answered with 408.
        """
        try:
            with self._faults().caught("admission"):
                self._check_load(scope)
        except OverloadedError as error:
            retry = (b"retry-after", str(error.retry_after).encode())
            await _discard_body(receive)
            await refuse(scope, error.status, str(error), send, retry)
            return
        await self.app(scope, receive, send)

    def _check_load(self, scope: Scope) -> None:
        path = scope.get("path", "")
        if scope.get("method") != "POST" or not (path.startswith(PREFIXES) or path in BARE):
            return
        headers = headers_of(scope)
        query = scope.get("query_string", b"").decode("latin-1")
        self._admission.check(load_key(headers.items(), query, self._settings), headers)


def _with_notice(connection: Connection, send: Send) -> Send:
    """Return a `send` that adds `connection: close` if the connection is closed afterwards."""

    async def noticed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and connection.closes_next:
            headers = [pair for pair in message.get("headers", ()) if pair[0] != b"connection"]
            message = {**message, "headers": [*headers, _CLOSE]}
        await send(message)

    return noticed


async def _discard_body(receive: Receive) -> None:
    """Read a body to its end before its request is refused.

    A connection that is closed with unread bytes is reset by the system: the client would see that,
    and never the answer.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(HEADER_SECONDS):
            message = await receive()
            while message["type"] == "http.request" and message.get("more_body", False):
                message = await receive()


async def accept(
    listener: socket.socket,
    connection: Callable[[], Connection],
    among: Connections,
    at_once: int = AT_ONCE,
) -> None:
    """Accept connections until cancelled; without free descriptors, pause and log it.

    asyncio's own loop would continue with its whole backlog, and log a traceback and start a timer
    for each: 110,000 in 14 seconds, with no time for anything else.
    """
    loop = asyncio.get_running_loop()
    logged_at = -_TOLD_SECONDS
    async with asyncio.TaskGroup() as taking:
        for number in itertools.count(1):
            try:
                client = await _next_client(listener)
            except ConnectionError:  # it left while it waited
                continue
            except OSError as error:
                if loop.time() - logged_at >= _TOLD_SECONDS:
                    logged_at = loop.time()
                    log.error(_not_taken(error, len(among)))
                among.make_room()
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                task = taking.create_task(_take(client, connection))
                task.add_done_callback(partial(_closed_if_not_taken, client))
                if number % at_once == 0:
                    await asyncio.sleep(0)


async def _next_client(listener: socket.socket) -> socket.socket:
    """The next connection, once there is one.

    Not asyncio's `sock_accept`: it takes a connection also for one who was cancelled in the same
    step of the loop, raises InvalidStateError into the log, and leaves the socket to the collector.
    """
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":  # whose loop waits for connections, not for their being there
        return (await loop.sock_accept(listener))[0]
    while True:
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError):  # none there, or another worker was faster
            waiting = asyncio.Event()
            loop.add_reader(listener, waiting.set)
            try:
                await waiting.wait()
            finally:
                loop.remove_reader(listener)
        else:
            client.setblocking(False)
            return client


async def _take(client: socket.socket, connection: Callable[[], Connection]) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(connection, client)
    except OSError:  # it left while it was taken
        client.close()


def _closed_if_not_taken(client: socket.socket, taking: asyncio.Task[None]) -> None:
    """A proxy that ends may have accepted a connection which nobody has begun to take."""
    if taking.cancelled():
        client.close()


def _not_taken(error: OSError, connections: int) -> Fields:
    return Fields(
        event="no_connection_taken",
        why=errno.errorcode.get(error.errno or 0, type(error).__name__),
        connections=connections,
        fix="Raise the limit of open files (ulimit -n).",
    )
