"""A request as the client sends it: its body as it comes, and the whole of it as others read it.

incoming: after switches and seen, before service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from io import BytesIO
from typing import Any, NamedTuple

from holdfast.errors import LimitError, WireError
from holdfast.surfaces.proxy.routes import Route
from holdfast.surfaces.proxy.seen import RequestSeen
from holdfast.surfaces.proxy.switches import Switches

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_SECONDS = 60.0
"""How long a client may take to send its request, or a piece of one that only passes through."""


class TooSlowError(WireError):
    """The client took too long to send its request."""


class Upload:
    """The body of a request, while it comes; read once, whole or in pieces."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._over = asyncio.Event()
        self._left = False
        self._read = b""
        """The body as far as `whole` has read it: after an internal error it is sent unchanged."""
        self._is_complete = False
        self.failure: TooSlowError | None = None
        """The reason for an early end: a library that forwards the pieces has no error of its own.
        """

    async def whole(self, most: int) -> bytes:
        """All of it; more than is allowed is heard out for a while, then refused.

        Clients seldom read an answer before they have sent everything, but some never end.
        """
        # Grown in place: to join 20 MB of parts held the loop for 15 ms, and held them twice.
        body = BytesIO()
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in self._parts():
                    size += len(part)
                    if size <= most:
                        body.write(part)
                    elif size > 2 * most:
                        break
        except TimeoutError:
            raise self._too_slow() from None
        finally:
            self._read = body.getvalue()
        self._over.set()  # not after an internal error: `pieces` takes the rest then
        if size > most:
            raise LimitError(f"the body is larger than {most:,} bytes", fix="Send less at once.")
        return self._read

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body, each after the previous one was consumed.

        After an internal error interrupted `whole`, the bytes that it had read come first.
        """
        if self._read:
            yield self._read
        if self._is_complete:
            return
        parts = self._parts()
        while True:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    part = await anext(parts, None)
            except TimeoutError:
                raise self._too_slow() from None
            if part is None:
                return
            yield part

    async def until_gone(self) -> None:
        """Wait until the client leaves."""
        await self._over.wait()
        while not self._left:
            self._left = (await self._receive())["type"] == "http.disconnect"

    async def _parts(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._left = True
                self._over.set()
                await asyncio.Event().wait()  # the caller that waits for `until_gone` cancels this
            more = message.get("more_body", False)
            self._is_complete = not more
            if part := message.get("body", b""):
                yield part
        self._over.set()

    def _too_slow(self) -> TooSlowError:
        self._over.set()
        self.failure = TooSlowError("the body did not come in time", fix="Send the request again.")
        return self.failure


class IncomingRequest(NamedTuple):
    """A request as the client sent it."""

    route: Route
    path: str
    raw_path: str
    """The path as the client wrote it, before its escapes were read."""
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    switches: Switches
    seen: RequestSeen

    @property
    def wants_array(self) -> bool:
        """Whether the stream is a JSON array: Gemini's format without `alt=sse`."""
        gemini = self.route.dialect == "gemini"
        return gemini and self.route.streams and "alt=sse" not in self.query
