"""Connections that are silent, slow or too many at once: others are answered all the same."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest

from holdfast.surfaces.proxy import connections
from holdfast.surfaces.proxy.connections import (
    FIRST_READ,
    LEAST_READ,
    MOST_READ,
    SPARE,
    Connection,
    Connections,
    accept,
    most_connections,
    raise_descriptors,
)
from tests.fitting.test_citing import chat
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Running,
    ask,
    ask_model,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.test_server import Process
from tests.surfaces.proxy.test_told_errors import SHAPES
from tests.surfaces.proxy.upstream import Upstream

PATIENCE = 30.0
HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


def connect(proxy: Running) -> socket.socket:
    address = urlsplit(proxy.url)
    return socket.create_connection((address.hostname, address.port), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    """All that comes until the proxy closes the connection."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def answered(connection: socket.socket) -> bytes:
    """The head of one answer of /healthz, on a connection that is kept."""
    data = b""
    while not data.endswith(b"ok\n"):
        data += connection.recv(65_536)
    return data


# --- how long ------------------------------------------------------------------------------------


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with running_proxy() as proxy:
        yield proxy


def test_a_client_that_says_nothing_is_let_go_without_a_word(hasty: Running) -> None:
    with connect(hasty) as silent:
        assert everything(silent) == b""


def test_a_byte_now_and_then_does_not_keep_a_place(hasty: Running) -> None:
    # Slowloris: every byte comes in time after the last one, and the headers never end.
    with connect(hasty) as slow:
        slow.settimeout(0.05)
        slow.sendall(HEAD)
        said = b""
        for _ in range(1000):
            try:
                said = slow.recv(65_536)
                break
            except TimeoutError:
                slow.sendall(b"x")
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in said


def test_the_second_request_of_a_connection_has_its_time_too(hasty: Running) -> None:
    with connect(hasty) as kept:
        kept.sendall(HEAD + b"\r\n")
        assert answered(kept).startswith(b"HTTP/1.1 200 ")
        kept.sendall(HEAD)
        assert everything(kept).startswith(b"HTTP/1.1 408 ")


def test_a_long_answer_outlives_the_time_for_headers(hasty: Running) -> None:
    with connect(hasty) as kept, connect(hasty) as silent:
        kept.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n")
        body = request_in("openai-chat", chat("a disk is full"))
        kept.sendall(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body))
        assert everything(silent) == b""  # now the time for headers is over
        kept.sendall(body)
        assert everything(kept).startswith(b"HTTP/1.1 200 ")


# --- how many ------------------------------------------------------------------------------------


def at_most(requests: int) -> AbstractContextManager[object]:
    """Limit proxies that start now to a number of open requests, as with few open files."""
    return patch("holdfast.surfaces.proxy.server.most_connections", lambda _: requests)


def test_silent_connections_do_not_keep_others_out() -> None:
    raise_descriptors()
    most = 100
    with at_most(most), running_proxy() as proxy, ExitStack() as stack:
        for _ in range(2000):
            stack.enter_context(connect(proxy))
        body = request_in("anthropic", chat("a disk is full"))
        assert ask(f"{proxy.url}/v1/messages", body).status == 200
        assert len(proxy.server.connections) <= most + SPARE


def test_a_connection_that_is_kept_gives_way_and_one_with_a_request_does_not() -> None:
    with Upstream() as provider:
        provider.always = faults.stall_midway
        with at_most(1), running_proxy(upstream=provider.url) as proxy, ExitStack() as stack:
            kept = stack.enter_context(connect(proxy))
            kept.sendall(HEAD + b"\r\n")
            answered(kept)
            busy = stack.enter_context(stalled(proxy, provider))
            for _ in range(SPARE + 1):
                stack.enter_context(connect(proxy))
            assert everything(kept) == b""
            busy.settimeout(0.2)
            with pytest.raises(TimeoutError):  # the first half may come in pieces; no end does
                everything(busy)


@contextmanager
def stalled(proxy: Running, provider: Upstream) -> Iterator[socket.socket]:
    """A connection in the middle of its answer."""
    body = request_in("openai-chat", chat("short"), stream=True)
    head = f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with connect(proxy) as busy:
        busy.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n" + head + body)
        assert provider.waiting.acquire(timeout=PATIENCE)
        assert busy.recv(65_536).startswith(b"HTTP/1.1 200 ")
        yield busy


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_full_proxy_says_when_to_come_again(dialect: str) -> None:
    with Upstream() as provider:
        provider.always = faults.stall_midway
        with (
            at_most(1),
            running_proxy(upstream=provider.url) as proxy,
            stalled(proxy, provider),
        ):
            full = ask_model(proxy, dialect, chat("short"))
            assert full.status == 503
            assert full.headers["retry-after"] == "1"
            assert full.headers["connection"] == "close"
            assert set(full.json["error"]) == SHAPES[dialect]
            assert "ulimit -n" in full.json["error"]["message"]


def test_the_limit_leaves_descriptors_for_upstreams() -> None:
    assert most_connections(1024) == 416
    assert most_connections(10**6) == 10_000
    assert most_connections(10) == 1


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 900), hard))
    try:
        descriptors = raise_descriptors()
        assert descriptors == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- how much at once ----------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What connections were given, read by read."""
    pieces: list[bytes] = []
    take = Connection.data_received

    def taken(connection: Connection, data: bytes) -> None:
        pieces.append(data)
        take(connection, data)

    monkeypatch.setattr(Connection, "data_received", taken)
    return pieces


def test_a_body_in_tiny_chunks_is_read_in_small_steps(reads: list[bytes]) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    chunks = b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n"
    with running_proxy() as proxy, connect(proxy) as client:
        client.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
        client.sendall(chunks)
        assert everything(client).startswith(b"HTTP/1.1 400 ")
    sizes = list(map(len, reads))
    assert max(sizes) <= FIRST_READ
    assert sizes.count(LEAST_READ) > 100


@pytest.mark.parametrize("length", ["content-length: %d", "transfer-encoding: chunked"])
def test_a_body_in_large_pieces_is_read_in_large_steps(reads: list[bytes], length: str) -> None:
    body = b"x" * 1_000_000
    framed, field = body, length
    if "%d" in length:
        field = length % len(body)
    else:
        framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    with running_proxy() as proxy, connect(proxy) as client:
        client.sendall(f"{head}{field}\r\n\r\n".encode())
        client.sendall(framed)
        assert everything(client).startswith(b"HTTP/1.1 400 ")
    assert MOST_READ in map(len, reads)


# --- no descriptors ------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_a_proxy_without_descriptors_says_so_once_and_recovers(tmp_path: Path) -> None:
    process = Process(tmp_path, "--store", "memory:")
    pid, address = process.process.pid, urlsplit(process.url)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    opened = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened + 5, limits[1]))
    with ExitStack() as stack:
        for _ in range(50):  # the system takes them for the proxy, which cannot
            client = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
            stack.enter_context(client)
        told = next(line for line in process.stderr if "ERROR" in line)
        assert "event=no_connection_taken why=EMFILE" in told
        assert "ulimit -n" in told
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert ask(f"{process.url}/healthz").status == 200
    process.process.terminate()
    code, rest = process.end()
    assert code == 0
    assert "ERROR" not in rest
    assert "Traceback" not in rest


# --- at the end ----------------------------------------------------------------------------------


def test_a_connection_that_comes_with_the_end_is_left_to_the_system() -> None:
    """asyncio's own `sock_accept` takes it for one who waits no more, and loses it."""
    faults_of_the_loop: list[dict[str, object]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults_of_the_loop.append(context))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            taking = accept(listener, pytest.fail, Connections(9))
            accepting = asyncio.create_task(taking)
            await asyncio.sleep(0)
            with socket.create_connection(listener.getsockname(), timeout=PATIENCE):
                await asyncio.sleep(0)  # the loop has seen the connection when this returns
                accepting.cancel()
                with suppress(asyncio.CancelledError):
                    await accepting
                await asyncio.sleep(0)

    asyncio.run(work())
    assert faults_of_the_loop == []


# --- how they end --------------------------------------------------------------------------------


def kept_answer(connection: socket.socket) -> bytes:
    """One answer of /healthz on a connection."""
    connection.sendall(HEAD + b"\r\n")
    return answered(connection)


def test_connections_are_kept_longer_than_clients_keep_them() -> None:
    with running_proxy() as proxy:
        assert proxy.server.config.timeout_keep_alive > 90


def test_a_crowded_proxy_closes_connections_with_notice() -> None:
    with at_most(2), running_proxy() as proxy, ExitStack() as stack:
        first = stack.enter_context(connect(proxy))
        assert b"connection: close" not in kept_answer(first)
        second = stack.enter_context(connect(proxy))
        assert b"connection: close" not in kept_answer(second)
        third = stack.enter_context(connect(proxy))
        assert b"connection: close" in kept_answer(third)
        assert everything(third) == b""
        assert b"connection: close" not in kept_answer(first), "it was not closed for another"


def test_a_proxy_that_stops_says_so_in_its_last_answers() -> None:
    with Upstream() as provider:
        provider.always = faults.stall_midway
        with running_proxy({}, provider.url) as proxy, connect(proxy) as kept:
            kept_answer(kept)
            proxy.server.connections.is_closing = True
            assert b"connection: close" in kept_answer(kept)


def test_a_client_that_is_still_sending_reads_that_the_proxy_is_full() -> None:
    """A connection with unread bytes is reset when it is closed: the answer was lost."""
    with Upstream() as provider:
        provider.always = faults.stall_midway
        with (
            at_most(1),
            running_proxy(upstream=provider.url) as proxy,
            stalled(proxy, provider),
            connect(proxy) as sending,
        ):
            body = b"x" * 3_000_000
            head = f"content-length: {len(body)}\r\n\r\n".encode()
            sending.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n" + head)
            sending.sendall(body)
            assert everything(sending).startswith(b"HTTP/1.1 503 ")
