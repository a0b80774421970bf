"""Incomplete upstream responses: the error explains them, and they never pass as complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.upstream.network import BrokenOffError, HttpSending, UpstreamReply

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
BEGINNINGS = {
    "by length": _HEAD + b"content-length: 100\r\n\r\nbegin",
    "in chunks": _HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n",
    "inside a chunk": _HEAD + b"transfer-encoding: chunked\r\n\r\n20\r\nbegin",
}


@asynccontextmanager
async def _upstream(beginning: bytes, *, closes: bool) -> AsyncIterator[str]:
    """Answer every request with a beginning, then close or stay silent."""

    tasks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(beginning)
        await writer.drain()
        if not closes:
            await reader.read()  # returns when the client has left
        writer.close()
        await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(answer(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        await asyncio.gather(*tasks)


async def _read_all(reply: UpstreamReply, into: bytearray) -> None:
    async for chunk in reply.chunks():
        into += chunk


async def _read(url: str, idle_seconds: float) -> tuple[bytes, BrokenOffError]:
    """Return the received bytes, and the error after them."""
    read = bytearray()
    async with (
        HttpSending(idle_seconds=idle_seconds) as sending,
        sending.send(url, "POST", {}, b"{}") as reply,
    ):
        with pytest.raises(BrokenOffError) as caught:
            await _read_all(reply, read)
    return bytes(read), caught.value


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_an_answer_that_is_cut_is_an_error_and_no_end(beginning: bytes) -> None:
    async def main() -> None:
        async with _upstream(beginning, closes=True) as url:
            read, error = await _read(url, 60.0)
        assert read == b"begin"
        assert error.status == 502
        assert "broke off its answer" in str(error)

    asyncio.run(main())


def test_an_upstream_that_falls_silent_is_a_timeout() -> None:
    async def main() -> None:
        async with _upstream(BEGINNINGS["by length"], closes=False) as url:
            read, error = await _read(url, 0.05)
        assert read == b"begin"
        assert error.status == 504
        assert "fell silent" in str(error)

    asyncio.run(main())
