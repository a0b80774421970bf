"""The ways to a server, with a bound on everything that it sends.

pipe: after config; it knows bytes and messages, not what they mean. The SDK's own ways have no
bounds: a line without an end would fill the memory, and a redirect would take our headers along to
another server. A program is started without a shell, in a process group of its own, and sees no
variable but those that every program needs and those that its entry names.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
import mcp_types as types
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
_CONNECT_SECONDS = 10.0

Streams = tuple[Any, Any]
Way = Callable[[ServerSpec], AbstractAsyncContextManager[Streams]]
"""Leads to a server."""


def way_to(
    spec: ServerSpec, *, most_bytes: int = MOST_BYTES, shows_errors: bool = False
) -> AbstractAsyncContextManager[Streams]:
    """The streams of messages from and to a server, to be entered."""
    if spec.transport == "stdio":
        return _program(spec, most_bytes, shows_errors=shows_errors)
    if spec.transport == "sse":
        return sse_client(
            spec.url,
            headers=dict(spec.headers),
            httpx_client_factory=lambda headers=None, timeout=None, auth=None: _http(
                headers, timeout, auth, most_bytes
            ),
        )
    return _streamable(spec, most_bytes)


@asynccontextmanager
async def _streamable(spec: ServerSpec, most_bytes: int) -> AsyncIterator[Streams]:
    async with (
        _http(dict(spec.headers), None, None, most_bytes) as client,
        streamable_http_client(spec.url, http_client=client) as streams,
    ):
        yield streams


# --- programs ------------------------------------------------------------------------------------


@asynccontextmanager
async def _program(
    spec: ServerSpec, most_bytes: int, *, shows_errors: bool
) -> AsyncIterator[Streams]:
    process = await asyncio.create_subprocess_exec(
        spec.command,
        *spec.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # What a server complains of may hold text of a conversation: nobody keeps it.
        stderr=None if shows_errors else asyncio.subprocess.DEVNULL,
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
    try:
        yield from_server, to_server
    finally:
        # Also when the session is cancelled: no program may outlive the gateway.
        with anyio.CancelScope(shield=True):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _end(process)
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
    # Pipes that a child of the program still holds would stay open: nothing public closes them.
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


def _http(
    headers: dict[str, str] | None,
    timeout: httpx2.Timeout | None,
    auth: httpx2.Auth | None,
    most_bytes: int,
) -> httpx2.AsyncClient:
    """A client that follows nobody elsewhere, and reads no credentials that it was not given."""
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(_CONNECT_SECONDS, read=None),
        transport=_Bounded(httpx2.AsyncHTTPTransport(trust_env=False), most_bytes),
        follow_redirects=False,
        trust_env=False,
    )


class _Bounded(httpx2.AsyncBaseTransport):
    """Bounds what an answer may hold: as a whole, or of one event where it is a stream."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, most_bytes: int) -> None:
        self._inner = inner
        self._most_bytes = most_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its answer is read under the bound."""
        response = await self._inner.handle_async_request(request)
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
