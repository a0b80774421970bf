"""Connections to servers, with a limit on every message.

The SDK has no limits: an endless line would fill the memory, and a redirect would take our headers
to another server. Nothing is sent to another scheme, host or port than in the server's entry. A
program is started without a shell, in its own process group, and gets only basic variables and
those of its entry.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client import streamable_http
from mcp.client.sse import sse_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from holdfast.errors import ToolServerError
from holdfast.surfaces.mcp.config import ServerSpec

MOST_BYTES = 32_000_000
"""Maximum bytes of one message."""
_GRACE_SECONDS = 2.0
"""Time for a program to end after its input is closed, and again after each signal."""
_POLL_SECONDS = 0.01
_MOST_JUNK = 1_000
"""Maximum lines that are not messages; some programs print a greeting."""
_MOST_ERROR_BYTES = 20_000
"""Bytes of a program's error stream that are shown to a user who tries it."""
_CONNECT_SECONDS = 10.0
_REFUSALS = (401, 403)
_SESSION_HEADER = "mcp-session-id"
FORGOTTEN = -32098
"""Our code for a session that a remote server has forgotten, whatever its own error is."""
_FORGOTTEN_ERROR = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": FORGOTTEN, "message": "The session is over."},
}

# The SDK logs unreadable messages, which may hold text of a conversation; its HTTP client logs full
# URLs, with the keys in them.
logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
logging.getLogger("httpx2").setLevel(logging.WARNING)
# Its events are limited to a mebibyte without an option; `_BoundedTransport` has our own limit.
streamable_http.EventSource = partial(  # type: ignore[assignment,attr-defined]
    httpx2.EventSource, max_event_size=None
)

Streams = tuple[Any, Any]
Way = Callable[[ServerSpec], AbstractAsyncContextManager[Streams]]
"""Connects to a server."""


def open_way(
    spec: ServerSpec, *, most_bytes: int = MOST_BYTES, hear: Callable[[str], None] | None = None
) -> AbstractAsyncContextManager[Streams]:
    """Return a context manager with the message streams from and to a server.

    `hear` gets the first lines of a program's error stream. By default they are dropped, since they
    may hold text of a conversation.
    """
    if spec.transport == "stdio":
        return _program(spec, most_bytes, hear)
    if spec.transport == "sse":
        return sse_client(
            spec.url,
            headers=dict(spec.headers),
            httpx_client_factory=lambda headers=None, timeout=None, auth=None: _http(
                spec, headers, timeout, auth, most_bytes
            ),
        )
    return _streamable(spec, most_bytes)


@asynccontextmanager
async def _streamable(spec: ServerSpec, most_bytes: int) -> AsyncIterator[Streams]:
    async with (
        _http(spec, dict(spec.headers), None, None, most_bytes) as client,
        streamable_http_client(spec.url, http_client=client) as streams,
    ):
        yield streams


# --- programs ------------------------------------------------------------------------------------


@asynccontextmanager
async def _program(
    spec: ServerSpec, most_bytes: int, hear: Callable[[str], None] | None
) -> AsyncIterator[Streams]:
    if spec.cwd and not Path(spec.cwd).is_dir():  # otherwise the error would blame the program
        raise ToolServerError("its folder (`cwd`) cannot be found")
    process = await asyncio.create_subprocess_exec(
        spec.command,
        *spec.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE if hear else asyncio.subprocess.DEVNULL,
        env={**get_default_environment(), **spec.env},
        cwd=spec.cwd or None,
        start_new_session=True,
        limit=most_bytes,
    )
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read_messages(process, to_session)),
        asyncio.create_task(_write_messages(process, from_session, to_session)),
    ]
    complaints = [asyncio.create_task(_read_errors(process, hear))] if hear else []
    try:
        yield from_server, to_server
    finally:
        # Even on cancellation: no program may outlive the gateway.
        with anyio.CancelScope(shield=True):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _end(process)
            for task in complaints:  # the reason for its end may be its last output
                await asyncio.wait([task], timeout=_GRACE_SECONDS)
                task.cancel()
            _close_pipes(process)
            for stream in (to_session, from_server, to_server, from_session):
                stream.close()


async def _read_messages(process: asyncio.subprocess.Process, to_session: Any) -> None:
    """Forward the program's messages, one per line, until it ends."""
    assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
    junk = 0
    async with to_session:
        with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # A line over the limit raises ValueError: reading cannot continue after it.
            while (line := await process.stdout.readline()) and junk < _MOST_JUNK:
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    junk += 1
                    continue
                await to_session.send(SessionMessage(message))


async def _read_errors(process: asyncio.subprocess.Process, hear: Callable[[str], None]) -> None:
    """Forward the first lines of the error stream; read on, so that the pipe never fills."""
    assert process.stderr is not None  # noqa: S101 - it was opened as a pipe
    remaining, line = _MOST_ERROR_BYTES, b""
    while chunk := await process.stderr.read(_MOST_ERROR_BYTES):
        visible, remaining = chunk[: max(0, remaining)], remaining - len(chunk)
        *lines, line = (line + visible).split(b"\n")
        for each in lines:
            hear(each.decode("utf-8", "replace"))
    if line:
        hear(line.decode("utf-8", "replace"))
    if remaining < 0:
        hear("… the rest of what it wrote to its error stream is not shown.")


async def _write_messages(
    process: asyncio.subprocess.Process, from_session: Any, to_session: Any
) -> None:
    assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
    try:
        async for message in from_session:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        to_session.close()  # otherwise the session would wait for an answer forever


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, then terminate and kill its process group if it does not end."""
    assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
    process.stdin.close()
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, sign)
        if await _has_ended(process):
            break


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close the pipes, which a child of the program might keep open."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Return whether it ends in time; `wait` would also wait for pipes that a child holds."""
    for _ in range(round(_GRACE_SECONDS / _POLL_SECONDS)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return process.returncode is not None


# --- HTTP ----------------------------------------------------------------------------------------


class _Client(httpx2.AsyncClient):
    """A client without a limit for events; the transport has one."""

    def sse(self, *args: Any, **options: Any) -> Any:
        """Return events of any size, since the stream below is limited."""
        return super().sse(*args, **{**options, "max_event_size": None})


def _http(
    spec: ServerSpec,
    headers: dict[str, str] | None,
    timeout: httpx2.Timeout | None,
    auth: httpx2.Auth | None,
    most_bytes: int,
) -> httpx2.AsyncClient:
    """Return a client that stays on its origin and reads no credentials from the environment."""
    inner = httpx2.AsyncHTTPTransport(trust_env=False)
    return _Client(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(_CONNECT_SECONDS, read=None),
        transport=_BoundedTransport(inner, _origin(httpx2.URL(spec.url)), most_bytes),
        follow_redirects=True,  # only within the server's origin, which the transport enforces
        trust_env=False,
    )


Origin = tuple[str, str, int | None]


def _origin(url: httpx2.URL) -> Origin:
    return url.scheme, url.host, url.port  # the default port of a scheme is None


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends to one server only and limits its responses.

    The limit is for the whole response, or per event of a stream.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, origin: Origin, most_bytes: int) -> None:
        self._inner = inner
        self._origin = origin
        self._most_bytes = most_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its response is read with the limit."""
        if _origin(request.url) != self._origin:
            raise ToolServerError(
                "it redirects to another server, which would get its headers",
                fix="Name the other address in the list of servers, if you trust it.",
            )
        response = await self._inner.handle_async_request(request)
        if response.status_code in _REFUSALS:
            await response.aclose()
            raise ToolServerError(
                f"it requires other credentials (HTTP {response.status_code})",
                fix="Give it its token in `headers` of its entry.",
            )
        if response.status_code == 404 and _SESSION_HEADER in request.headers:
            await response.aclose()
            return httpx2.Response(404, json=_FORGOTTEN_ERROR, request=request)
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            is_events = "event-stream" in response.headers.get("content-type", "")
            response.stream = _BoundedStream(stream, self._most_bytes, is_events=is_events)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, most_bytes: int, *, is_events: bool) -> None:
        self._inner = inner
        self._most_bytes = most_bytes
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._inner:
            # Events end with an empty line; a stream of many small ones may be endless.
            ends = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n")) if self._is_events else -1
            length = len(chunk) - ends if ends >= 0 else length + len(chunk)
            if length > self._most_bytes:
                raise ToolServerError(
                    f"a server sent a message of more than {self._most_bytes:,} bytes",
                    fix="Ask it for less at once.",
                )
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
