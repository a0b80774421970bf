"""The ways to a server, with a bound on everything that it sends.

pipe: after config; it knows bytes and messages, not what they mean. The SDK's own ways have no
bounds: a line without an end would fill the memory, and a redirect would take our headers along to
another server. Nothing is ever sent to another scheme, host or port than those of a server's entry;
a redirect within them (`/mcp` to `/mcp/`) is followed. A program is started without a shell, in a
process group of its own, and sees no variable but those that every program needs and those that its
entry names.
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
"""Of one message of a server."""
_GRACE_SECONDS = 2.0
"""For a program to end once its input is closed, and again once it is told to."""
_LOOK_SECONDS = 0.01
_MOST_JUNK = 1_000
"""Lines that are no messages: some programs greet on their standard output; none goes on so."""
_MOST_COMPLAINTS = 20_000
"""Bytes of a program's error stream that are shown to a person who tries it."""
_CONNECT_SECONDS = 10.0
_REFUSALS = (401, 403)
_SESSION_HEADER = "mcp-session-id"
FORGOTTEN = -32098
"""Code of the error for a session that a server at an address knows no more, whatever it says."""
_FORGOTTEN_ERROR = {
    "jsonrpc": "2.0",
    "id": None,
    "error": {"code": FORGOTTEN, "message": "The session is over."},
}

# What the SDK cannot read it writes into its log, words of a conversation among it; its client of
# HTTP writes whole addresses there, with the keys in them.
logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
logging.getLogger("httpx2").setLevel(logging.WARNING)
# Its events hold a mebibyte at most, and no argument says otherwise: `_Bounded` has our own bound.
streamable_http.EventSource = partial(  # type: ignore[assignment,attr-defined]
    httpx2.EventSource, max_event_size=None
)

Streams = tuple[Any, Any]
Way = Callable[[ServerSpec], AbstractAsyncContextManager[Streams]]
"""Leads to a server."""


def way_to(
    spec: ServerSpec, *, most_bytes: int = MOST_BYTES, hear: Callable[[str], None] | None = None
) -> AbstractAsyncContextManager[Streams]:
    """The streams of messages from and to a server, to be entered.

    `hear` gets the first lines that a program writes to its error stream; without it nobody does,
    for what a server complains of may hold text of a conversation.
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
    if spec.cwd and not Path(spec.cwd).is_dir():  # else it would look as if the program were not
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
        asyncio.create_task(_reading(process, to_session)),
        asyncio.create_task(_writing(process, from_session, to_session)),
    ]
    complaints = [asyncio.create_task(_hearing(process, hear))] if hear else []
    try:
        yield from_server, to_server
    finally:
        # Also when the session is cancelled: no program may outlive the gateway.
        with anyio.CancelScope(shield=True):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _end(process)
            for task in complaints:  # why it ended may be the last that it wrote
                await asyncio.wait([task], timeout=_GRACE_SECONDS)
                task.cancel()
            _let_go(process)
            for stream in (to_session, from_server, to_server, from_session):
                stream.close()


async def _reading(process: asyncio.subprocess.Process, to_session: Any) -> None:
    """Hand on what the program writes, a message in each line; the stream ends with it."""
    assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
    junk = 0
    async with to_session:
        with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # A line over the bound is a ValueError: there is no way to go on behind it.
            while (line := await process.stdout.readline()) and junk < _MOST_JUNK:
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    junk += 1
                    continue
                await to_session.send(SessionMessage(message))


async def _hearing(process: asyncio.subprocess.Process, hear: Callable[[str], None]) -> None:
    """Hand on the first lines of the error stream, and drop the rest: it must not fill the pipe."""
    assert process.stderr is not None  # noqa: S101 - it was opened as a pipe
    left, line = _MOST_COMPLAINTS, b""
    while chunk := await process.stderr.read(_MOST_COMPLAINTS):
        shown, left = chunk[: max(0, left)], left - len(chunk)
        *lines, line = (line + shown).split(b"\n")
        for each in lines:
            hear(each.decode("utf-8", "replace"))
    if line:
        hear(line.decode("utf-8", "replace"))
    if left < 0:
        hear("… the rest of what it wrote to its error stream is not shown.")


async def _writing(process: asyncio.subprocess.Process, from_session: Any, to_session: Any) -> None:
    assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
    try:
        async for message in from_session:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError):
        to_session.close()  # else the session would wait for an answer for ever


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input and give it time, then end its whole group."""
    assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
    process.stdin.close()
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, sign)
        if await _has_ended(process):
            break


def _let_go(process: asyncio.subprocess.Process) -> None:
    """Close the pipes: those that a child of the program still holds would stay open."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends in time; `wait` would also wait for pipes that nobody reads any more."""
    for _ in range(round(_GRACE_SECONDS / _LOOK_SECONDS)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    return process.returncode is not None


# --- HTTP ----------------------------------------------------------------------------------------


class _Client(httpx2.AsyncClient):
    """A client whose events are as long as the transport allows."""

    def sse(self, *args: Any, **options: Any) -> Any:
        """Events of any size: the stream beneath is bounded."""
        return super().sse(*args, **{**options, "max_event_size": None})


def _http(
    spec: ServerSpec,
    headers: dict[str, str] | None,
    timeout: httpx2.Timeout | None,
    auth: httpx2.Auth | None,
    most_bytes: int,
) -> httpx2.AsyncClient:
    """A client that follows nobody elsewhere, and reads no credentials that it was not given."""
    inner = httpx2.AsyncHTTPTransport(trust_env=False)
    return _Client(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(_CONNECT_SECONDS, read=None),
        transport=_Bounded(inner, _origin(httpx2.URL(spec.url)), most_bytes),
        follow_redirects=True,  # within the server's own origin: the transport knows no other
        trust_env=False,
    )


Origin = tuple[str, str, int | None]


def _origin(url: httpx2.URL) -> Origin:
    return url.scheme, url.host, url.port  # a scheme's own port is None


class _Bounded(httpx2.AsyncBaseTransport):
    """Sends to one server alone, and bounds what an answer may hold.

    The bound is for an answer as a whole, or for one event where it is a stream.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, origin: Origin, most_bytes: int) -> None:
        self._inner = inner
        self._origin = origin
        self._most_bytes = most_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its answer is read under the bound."""
        if _origin(request.url) != self._origin:
            raise ToolServerError(
                "it redirects to another server, which would get its headers",
                fix="Name the other address in the list of servers, if you trust it.",
            )
        response = await self._inner.handle_async_request(request)
        if response.status_code in _REFUSALS:
            await response.aclose()
            raise ToolServerError(
                f"it wants other credentials (HTTP {response.status_code})",
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
        """Let go of all connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, most_bytes: int, *, is_events: bool) -> None:
        self._inner = inner
        self._most_bytes = most_bytes
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._inner:
            # Events end with an empty line; a stream of many small ones may go on for ever.
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
