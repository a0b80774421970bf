"""Unknown requests are forwarded unchanged: compared byte by byte."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.settings import UpstreamEntry
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Running,
    ask,
    ask_model,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.test_told_errors import SHAPES
from tests.surfaces.proxy.wire import OK, PATIENCE, Wire


def said_to(url: str, data: bytes) -> bytes:
    """All that comes back for some bytes."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def asked(method: str, target: bytes, body: bytes = b"", headers: tuple[bytes, ...] = ()) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (method.encode(), target), b"Host: localhost", *headers]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


def headers_of(message: bytes) -> set[bytes]:
    """The headers of a request or an answer, without those of the hop."""
    lines = message.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    found = {line.partition(b":")[0].lower() + b":" + line.partition(b":")[2] for line in lines}
    return {line for line in found if line.split(b":")[0] not in (b"host", b"connection", b"date")}


@contextmanager
def before(wire: Wire, **settings: object) -> Iterator[Running]:
    with running_proxy(settings, wire.url) as proxy:
        yield proxy


@pytest.fixture
def proxy(wire: Wire) -> Iterator[Running]:
    with before(wire) as made:
        yield made


@pytest.mark.parametrize(
    "target",
    [
        b"/v1/models",
        b"/v1/models?a=%7e&b=%C3%a9&c=+&d&key=1&e=a%2Fb&&=",
        b"/v1/files/%7Ea%2Fb%c3%a9;x=1/~*'()!$,",
        b"/v1//evil.example/models",
        b"/v1/files/a...b/..c",
        b"/v1beta/files/x:y?alt=media",
    ],
)
def test_a_target_keeps_its_very_bytes(wire: Wire, proxy: Running, target: bytes) -> None:
    said_to(proxy.url, asked("GET", target))
    assert wire.got[0].split(b" ")[1] == target


def test_a_key_of_the_settings_takes_only_the_clients_out_of_a_query(wire: Wire) -> None:
    with before(wire, upstreams={"gemini": UpstreamEntry(key="ours")}) as proxy:
        said_to(proxy.url, asked("GET", b"/v1beta/files?a=%7e+&%6bey=theirs&key=theirs&b"))
    assert wire.got[0].split(b" ")[1] == b"/v1beta/files?a=%7e+&b"


@pytest.mark.parametrize(
    "target", [b"/v1/../x", b"/v1/%2e%2e/x", b"/v1/.%2E/x", b"/v1/a/..", b"/v1/..%5Cx", b"/v1/./x"]
)
def test_no_path_climbs_out_of_the_upstreams(wire: Wire, proxy: Running, target: bytes) -> None:
    assert b" 400 " in said_to(proxy.url, asked("GET", target)).splitlines()[0]
    assert wire.got == []


@pytest.mark.parametrize("target", [b"http://evil.example/v1/models", b"//evil.example/v1/models"])
def test_no_target_names_another_host(wire: Wire, proxy: Running, target: bytes) -> None:
    assert b" 404 " in said_to(proxy.url, asked("GET", target)).splitlines()[0]
    assert wire.got == []


@pytest.mark.parametrize(
    ("method", "body", "headers"),
    [
        ("GET", b"", ()),
        ("GET", b"", (b"Accept: a/b", b"User-Agent: c", b"Accept-Encoding: br")),
        ("DELETE", b"", (b"X-Odd: \xc3\xa9",)),
        ("POST", b"\x00\xff\r\n--x", (b"Content-Type: multipart/form-data; boundary=x",)),
        ("POST", b"\x1f\x8b\x00", (b"Content-Encoding: gzip",)),
        ("PUT", b"{}", ()),
    ],
)
def test_a_request_has_no_header_more_or_less(
    wire: Wire, proxy: Running, method: str, body: bytes, headers: tuple[bytes, ...]
) -> None:
    request = asked(method, b"/v1/files", body, headers)
    said_to(proxy.url, request)
    empty = {b"content-length: 0"}  # which means the same
    assert headers_of(wire.got[0]) - empty == headers_of(request)
    assert wire.got[0].partition(b"\r\n\r\n")[2] == body


def test_what_is_for_this_hop_alone_stays_here(wire: Wire, proxy: Running) -> None:
    request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Hop\r\nX-Hop: 1"
    said_to(proxy.url, request + b"\r\nX-Holdfast-No-Cite: on\r\n\r\n")
    assert headers_of(wire.got[0]) == set()


def test_a_key_goes_to_nobody_elses_upstream(wire: Wire, proxy: Running) -> None:
    keys = (b"Authorization: Bearer o", b"x-goog-api-key: g", b"x-api-key: a")
    said_to(
        proxy.url,
        asked("POST", b"/v1/chat/completions", request_in("openai-chat", chat("short")), keys),
    )
    said_to(proxy.url, asked("GET", b"/v1beta/models", b"", keys))
    openai, gemini = wire.got
    assert b"x-goog-api-key" not in openai
    assert b"authorization: Bearer o" in openai
    assert b"x-api-key" not in gemini
    assert b"x-goog-api-key: g" in gemini


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", OK),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-type: a/b\r\n\r\n\x00\xff\x1f"),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b"),
        ("GET", b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n'),
        ("GET", b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n"),
        (
            "GET",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-long: " + b"a" * 20_000 + b"\r\n\r\n{}",
        ),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\ncontent-type: a/b\r\n\r\n"),
        ("DELETE", b"HTTP/1.1 204 No Content\r\nx-request-id: 7\r\n\r\n"),
        ("OPTIONS", b"HTTP/1.1 200 OK\r\nallow: GET, POST\r\ncontent-length: 0\r\n\r\n"),
    ],
)
def test_an_answer_arrives_as_it_is(wire: Wire, proxy: Running, method: str, answer: bytes) -> None:
    wire.answer = answer
    got = said_to(proxy.url, asked(method, b"/v1/files/x"))
    assert got.split(b" ")[1] == answer.split(b" ")[1]
    assert headers_of(got) == headers_of(answer)
    assert got.partition(b"\r\n\r\n")[2] == answer.partition(b"\r\n\r\n")[2]


def test_a_header_that_comes_twice_arrives_with_both_values(wire: Wire, proxy: Running) -> None:
    wire.answer = b"HTTP/1.1 200 OK\r\nlink: a\r\nlink: b\r\ncontent-length: 2\r\n\r\n{}"
    assert ask(f"{proxy.url}/v1/models").headers["link"] == "a, b"


def test_an_answer_that_breaks_off_is_not_made_to_look_whole(wire: Wire, proxy: Running) -> None:
    wire.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"
    got = said_to(proxy.url, asked("GET", b"/v1/models"))
    assert b"content-length: 9" in got or not got.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("budget", ["9" * 5000, "0", "-1", "1e3", "²"])
def test_a_budget_that_is_none_is_refused(proxy: Running, budget: str) -> None:
    headers = {"x-holdfast-budget": budget.encode("latin-1")}
    answered = ask(f"{proxy.url}/v1/chat/completions", b"{}", headers)  # type: ignore[arg-type]
    assert answered.status == 400
    assert "x-holdfast-budget" in answered.json["error"]["message"]


@pytest.mark.parametrize("status", [b"101 Switching Protocols", b"999 ", b"000 ", b"600 x"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_status_that_ends_no_request_is_told_as_an_error(
    wire: Wire, proxy: Running, status: bytes, dialect: str
) -> None:
    # The server would refuse to write such a status, and close the connection without a word.
    wire.answer = b"HTTP/1.1 %b\r\ncontent-length: 2\r\n\r\n{}" % status
    answered = ask_model(proxy, dialect, chat("short"))
    assert answered.status == 502
    assert set(answered.json["error"]) == SHAPES[dialect]


@pytest.mark.parametrize("status", [b"101 Switching Protocols", b"999 ", b"000 "])
def test_no_such_status_passes_through(wire: Wire, proxy: Running, status: bytes) -> None:
    wire.answer = b"HTTP/1.1 %b\r\ncontent-length: 2\r\n\r\n{}" % status
    assert b" 502 " in said_to(proxy.url, asked("GET", b"/v1/models")).splitlines()[0]
