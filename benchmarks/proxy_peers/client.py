"""A client that costs little: requests made beforehand, written to open connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

_HEADERS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n"
    b"content-type: application/json\r\nauthorization: Bearer key-of-the-benchmark\r\n"
)


class Connection:
    """One connection to a server, used for request after request."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        made = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        self._reader, self._writer = made
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    async def ask(self, body: bytes) -> bytes:
        """Send a request; its answer's body, or an error if it is no success."""
        self._writer.write(_HEADERS + b"content-length: %d\r\n\r\n" % len(body) + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if b"\r\ntransfer-encoding: chunked" in head:
            answer = await self._chunks()
        else:
            length = head.partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0]
            answer = await self._reader.readexactly(int(length))
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"{head.split(b' ', 2)[1].decode()}: {answer[:200]!r}")
        return answer

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(parts)


async def times(port: int, bodies: Sequence[bytes]) -> list[float]:
    """Milliseconds of each request, one after the other."""
    found = []
    async with Connection(port) as connection:
        for body in bodies:
            start = time.perf_counter()
            await connection.ask(body)
            found.append((time.perf_counter() - start) * 1000)
    return found


async def rate(port: int, conversations: Sequence[Sequence[bytes]]) -> float:
    """Requests a second, each conversation in turn over its own connection, all at once."""

    async def hold(bodies: Sequence[bytes]) -> None:
        async with Connection(port) as connection:
            for body in bodies:
                await connection.ask(body)

    start = time.perf_counter()
    await asyncio.gather(*map(hold, conversations))
    return sum(map(len, conversations)) / (time.perf_counter() - start)


async def streams(port: int, bodies: Sequence[bytes]) -> tuple[int, float]:
    """Streams that came to their end, of those opened at once, and the seconds it took."""

    async def one(body: bytes) -> bool:
        async with Connection(port) as connection:
            return b"[DONE]" in await connection.ask(body)

    start = time.perf_counter()
    ended = await asyncio.gather(*map(one, bodies), return_exceptions=True)
    return sum(end is True for end in ended), time.perf_counter() - start
