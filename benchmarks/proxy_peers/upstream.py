"""A provider that costs next to nothing: it reads a request and says the same at once.

Run as a process: `python -m benchmarks.proxy_peers.upstream`; it prints its port. A request for a
stream gets EVENTS events, PAUSE seconds apart, so that many are open at once.
"""

from __future__ import annotations

import asyncio
import json

EVENTS = 20
PAUSE = 0.1

_SAME = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "gpt-4o"}
_USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
_MESSAGE = {"role": "assistant", "content": "It works."}
_WHOLE = json.dumps(
    {
        **_SAME,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": _MESSAGE, "finish_reason": "stop"}],
        "usage": _USAGE,
    }
).encode()
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(_WHOLE),
    _WHOLE,
)
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def _chunk(value: object) -> bytes:
    data = b"data: %s\n\n" % (value if isinstance(value, bytes) else json.dumps(value).encode())
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(delta: dict[str, str], stop: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return _chunk({**_SAME, "object": "chat.completion.chunk", "choices": [choice], **more})


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(_length(head))
            if b'"stream":true' in body or b'"stream": true' in body:
                await _say_slowly(writer)
            else:
                writer.write(_ANSWER)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _length(head: bytes) -> int:
    _, found, rest = head.partition(b"\r\ncontent-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


async def _say_slowly(writer: asyncio.StreamWriter) -> None:
    writer.write(_STREAM + _event({"role": "assistant", "content": ""}))
    for number in range(EVENTS):
        await asyncio.sleep(PAUSE)
        writer.write(_event({"content": f"word {number} "}))
        await writer.drain()
    writer.write(_event({}, "stop", usage=_USAGE) + _chunk(b"[DONE]") + b"0\r\n\r\n")
    await writer.drain()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=2**20, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
