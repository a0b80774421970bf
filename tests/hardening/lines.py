"""Bytes on a connection as chance writes them: requests that are hardly HTTP any more.

lines: after asks. A request is spelled as text and spoilt as text: its first line, its headers,
the frame of its body. Several may follow each other without waiting.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

from tests.hardening.asks import Asked, asked
from tests.wire.test_fuzz import mutate

_FIRST_LINES = (
    b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.0\r\n", b"GET / HTTP/0.9\r\n", b"GET /\r\n",
    b"GET  /  HTTP/1.1\r\n", b"get / http/1.1\r\n", b"GET / HTTP/2.0\r\n",
    b"\r\n\r\nGET / HTTP/1.1\r\n",
    b"PRI * HTTP/2.0\r\n", b"GET /\x00 HTTP/1.1\r\n", b"GET /\xff HTTP/1.1\r\n",
    b"GET * HTTP/1.1\r\n",
    b"GET http://example.org/ HTTP/1.1\r\n", b"CONNECT example.org:443 HTTP/1.1\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /v1/messages HTTP/1.1\n", b"OPTIONS * HTTP/1.1\r\n", b"GET /%zz%2 HTTP/1.1\r\n",
    b"GET /?\r\n HTTP/1.1\r\n", b"A" * 200 + b" / HTTP/1.1\r\n",
)  # fmt: skip
_HEADERS = (
    b"content-length: -1", b"content-length: 1, 2", b"content-length: 0x10", b"content-length: +3",
    b"content-length: 99999999999999999999", b"content-length: 5\r\ncontent-length: 6",
    b"transfer-encoding: chunked", b"transfer-encoding: chunked, identity", b"content-length: 4",
    b"transfer-encoding: xchunked", b"transfer-encoding : chunked",
    b"Transfer-Encoding:\x0bchunked",
    b"content-length: 3\r\ntransfer-encoding: chunked", b" folded: line", b"no colon here",
    b"host: a\r\nhost: b", b"x: " + b"y" * 70_000, b"\x00: x", b"x\xff: \xfe", b": empty",
    b"x:\r y",
    b"expect: 100-continue", b"connection: close", b"connection: upgrade\r\nupgrade: websocket",
    b"upgrade: h2c", b"trailer: x", b"te: trailers", b"x: a\x00b", b"content-encoding: gzip",
)  # fmt: skip
_CHUNKS = (
    b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhel", b"fffffffff\r\n", b"-1\r\n\r\n",
    b"zz\r\n",
    b"5;ext=\xff\r\nhello\r\n0\r\nx: y\r\n\r\n", b"00000000005\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"1\r\na\r\n" * 500 + b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n" + b"a: b\r\n" * 200 + b"\r\n",
)  # fmt: skip

BOMB = gzip.compress(b"[" + b" " * 40_000_000, 9)
"""Forty megabytes in forty kilobytes."""


def spelled(request: Asked) -> bytes:
    """Return a valid request on the wire."""
    names = {name for name, _ in request.headers}
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.target.encode())]
    lines += [name + b": " + value for name, value in request.headers]
    if b"content-length" not in names and b"transfer-encoding" not in names:
        lines.append(b"content-length: %d" % len(request.body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + request.body


def _other_first_line(data: bytes, chance: random.Random) -> bytes:
    return chance.choice(_FIRST_LINES) + data.partition(b"\r\n")[2]


def _another_header(data: bytes, chance: random.Random) -> bytes:
    first, _, rest = data.partition(b"\r\n")
    return first + b"\r\n" + chance.choice(_HEADERS) + b"\r\n" + rest


def _many_headers(data: bytes, chance: random.Random) -> bytes:
    first, _, rest = data.partition(b"\r\n")
    many = b"".join(b"x-%d: %d\r\n" % (n, n) for n in range(chance.choice((50, 500, 5000))))
    return first + b"\r\n" + many + rest


def _in_chunks(data: bytes, chance: random.Random) -> bytes:
    head, _, _ = data.partition(b"\r\n\r\n")
    kept = [line for line in head.split(b"\r\n") if not line.startswith(b"content-length")]
    kept.append(b"transfer-encoding: chunked")
    return b"\r\n".join(kept) + b"\r\n\r\n" + chance.choice(_CHUNKS)


def _bombed(data: bytes, chance: random.Random) -> bytes:
    del chance, data
    head = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-encoding: gzip\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(BOMB) + BOMB


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


_WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _other_first_line, _another_header, _another_header, _another_header, _many_headers,
    _in_chunks, _in_chunks, _cut, mutate, mutate,
)  # fmt: skip


def wire_bytes(chance: random.Random) -> bytes:
    """Return the bytes that a client sends on one connection."""
    if chance.random() < 0.002:
        return _bombed(b"", chance)
    requests = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = spelled(asked(chance))
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            data = chance.choice(_WAYS)(data, chance)
        requests.append(data)
    return b"".join(requests)
