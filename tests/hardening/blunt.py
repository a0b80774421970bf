"""An upstream that accepts everything and sends the response of a bomb: all at once, or byte by
byte.

It checks neither rules nor tokens: a bomb tests the proxy. A request with a ref is answered with a
call to open it, once.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from functools import cache
from types import TracebackType
from typing import Self

_REF = re.compile(rb"ref:[a-z_]+:[0-9a-f]{8,64}")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Blunt:
    """A server in a thread; `answer` is its next response."""

    def __init__(self) -> None:
        self.answer = "plain"
        self.url = ""
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._over is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)

    async def _run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._over.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            writer.write(self._said(body))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the proxy has left
        finally:
            writer.close()

    def _said(self, body: bytes) -> bytes:
        kind, _, what = self.answer.partition(":")
        if kind == "bytes":
            event = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
            data = event * (int(300_000 * float(what)) // len(event)) + b"data: [DONE]\n\n"
            return _STREAM + b"".join(b"1\r\n%c\r\n" % byte for byte in data) + b"0\r\n\r\n"
        if kind == "event":
            text = "x" * int(10_000_000 * float(what))
            delta = {"choices": [{"index": 0, "delta": {"content": text}}]}
            data = b"data: " + json.dumps(delta).encode() + b"\n\ndata: [DONE]\n\n"
            return _STREAM + b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
        if kind == "calls":
            return _with_calls(*what.split(":"))
        if kind == "expand" and b'"call_open"' not in body and (ref := _REF.search(body)):
            arguments = json.dumps({"ref_id": ref[0].decode(), **json.loads(what)})
            function = {"name": "expand_ref", "arguments": arguments}
            call = {"id": "call_open", "type": "function", "function": function}
            return _whole({"role": "assistant", "content": None, "tool_calls": [call]})
        return _whole({"role": "assistant", "content": "Well."})


_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
)


@cache
def _with_calls(how: str, count: str) -> bytes:
    """An answer with very many calls, as one piece or as a stream; `hidden` ones are for us."""
    name, arguments = ("expand_ref", '{"ref_id":"ref:log:0"}') if how == "hidden" else ("f", "{}")
    function = {"name": name, "arguments": arguments}
    calls = [
        {"id": f"call_{n}", "type": "function", "function": function} for n in range(int(count))
    ]
    if how != "streamed":
        return _whole({"role": "assistant", "content": None, "tool_calls": calls})
    deltas = [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(calls)]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (*events, last))
    return _STREAM + b"%x\r\n%s\r\n0\r\n\r\n" % (len(data) + 14, data + b"data: [DONE]\n\n")


def _whole(message: dict[str, object]) -> bytes:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    answer = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
    data = json.dumps(answer).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(data) + data
