"""Forwarded bodies: of any size, never held in memory, and stopped when the client leaves."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp.http_writer import StreamWriter

from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import Running, ask, request_in, running_proxy
from tests.surfaces.proxy.wire import OK, PATIENCE, Wire

MOST = 50_000
FILE = bytes(range(256)) * 2_000
"""Ten times as large as a request that is read may be."""
HELD = 24_000_000
"""Bytes that two pairs of sockets, with their buffers grown as far as Linux lets them, may hold."""
PIECE = b"x" * 262_144


@contextmanager
def before(url: str) -> Iterator[Running]:
    with running_proxy({"max_body_bytes": MOST}, url) as proxy:
        yield proxy


@contextmanager
def uploading(line: bytes) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client that begins to upload a file, and the listening upstream."""
    with (
        socket.create_server(("127.0.0.1", 0)) as upstream,
        before(f"http://127.0.0.1:{upstream.getsockname()[1]}") as proxy,
    ):
        address = urlsplit(proxy.url)
        with socket.create_connection((address.hostname, address.port), PATIENCE) as client:
            client.sendall(b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\n%b\r\n\r\n" % line)
            yield client, upstream


@pytest.mark.parametrize("path", ["/v1/files", "/v1/chat/completions"])
def test_a_body_that_only_passes_through_may_be_of_any_size(path: str) -> None:
    wire = Wire()
    with before(wire.url) as proxy:
        answered = ask(proxy.url + path, FILE, {"x-holdfast-bypass": "on"})
    wire.close()
    assert answered.status == 200
    head, _, body = wire.got[0].partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(FILE) in head.lower()
    assert sha256(body).digest() == sha256(FILE).digest()


def test_a_body_of_unknown_length_passes_in_chunks() -> None:
    with uploading(b"transfer-encoding: chunked") as (client, upstream):
        client.sendall(b"5\r\nfirst\r\n")
        taken, _ = upstream.accept()
        with taken:
            assert b"transfer-encoding: chunked" in read_until(taken, b"first\r\n").lower()
            client.sendall(b"4\r\nlast\r\n0\r\n\r\n")
            read_until(taken, b"last\r\n0\r\n\r\n")
            taken.sendall(OK)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_what_is_read_is_still_bounded() -> None:
    wire = Wire()
    with before(wire.url) as proxy:
        body = request_in("openai-chat", chat("x" * MOST))
        assert ask(f"{proxy.url}/v1/chat/completions", body).status == 413
    wire.close()
    assert wire.got == []


def test_an_upload_waits_for_an_upstream_that_does_not_take_it() -> None:
    with uploading(b"content-length: 1000000000") as (client, upstream):
        taken, _ = upstream.accept()
        with taken:
            assert sent_before_it_blocks(client) < HELD


def test_an_answer_waits_for_a_client_that_does_not_take_it() -> None:
    with uploading(b"content-length: 2") as (client, upstream):
        client.sendall(b"{}")
        taken, _ = upstream.accept()
        with taken:
            read_until(taken, b"{}")
            taken.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
            assert sent_before_it_blocks(taken) < HELD


def test_a_client_that_leaves_takes_its_upload_with_it() -> None:
    with uploading(b"content-length: 100") as (client, upstream):
        client.sendall(b"a part")
        taken, _ = upstream.accept()
        read_until(taken, b"a part")
        client.close()
        with taken:
            assert taken.recv(65_536) == b""


def test_an_upload_that_stops_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.surfaces.proxy.incoming_request.BODY_SECONDS", 0.2)
    with uploading(b"content-length: 100") as (client, _):
        client.sendall(b"a part")
        assert client.recv(65_536).startswith(b"HTTP/1.1 408 ")


def read_until(connection: socket.socket, end: bytes) -> bytes:
    connection.settimeout(PATIENCE)
    data = b""
    while not data.endswith(end):
        piece = connection.recv(65_536)
        assert piece, "it ended too early"
        data += piece
    return data


def sent_before_it_blocks(connection: socket.socket) -> int:
    """Bytes that are taken until nothing is for a second."""
    connection.setblocking(False)
    sent = 0
    while sent < 10 * HELD and select.select([], [connection], [], 1.0)[1]:
        sent += connection.send(PIECE)
    return sent


def test_a_large_request_is_sent_in_parts_and_arrives_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    write = StreamWriter.write

    async def noted(writer: StreamWriter, chunk: bytes, **how: Any) -> None:
        sizes.append(len(chunk))
        await write(writer, chunk, **how)

    monkeypatch.setattr(StreamWriter, "write", noted)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5_000_000}}
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": [image]}]}
    wire = Wire()
    with running_proxy({}, wire.url) as proxy:
        answered = ask(f"{proxy.url}/v1/chat/completions", asked)
    wire.close()
    assert answered.status == 200
    head, _, body = wire.got[0].partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head.lower()
    assert json.loads(body) == asked
    assert sum(sizes) == len(body)
    assert max(sizes) <= 65_536
