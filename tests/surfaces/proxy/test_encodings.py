"""Compressed bodies are decompressed when read, within bounds, and forwarded unchanged."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import zstandard

from holdfast.errors import LimitError, WireError
from holdfast.surfaces.proxy.encodings import unpacked
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import (
    KEYS,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

MOST = 1_000_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", raw_deflate),
    "zstd": ("zstd", zstandard.compress),
    "zstd in a gzip": ("zstd, gzip", lambda data: gzip.compress(zstandard.compress(data))),
}
EACH = pytest.mark.parametrize("packer", PACKERS)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        running.always = says(text("Hello."))
        yield running


@pytest.fixture(scope="module")
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({"max_body_bytes": MOST}, upstream.url) as running:
        yield running


@EACH
@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "gemini"])
def test_a_packed_request_is_answered_and_goes_on_unpacked(
    proxy: Running, upstream: Upstream, packer: str, dialect: str
) -> None:
    encoding, pack = PACKERS[packer]
    body = request_in(dialect, chat("short", question="What now?"))
    headers = {**KEYS, "content-encoding": encoding, "x-holdfast-offer-expand": "when_cited"}
    answered = ask(proxy.url + path_of(dialect), pack(body), headers)
    assert answered.status == 200, answered.body
    sent = upstream.requests[-1]
    assert json.loads(sent.body) == json.loads(body)
    assert "content-encoding" not in {name.lower() for name in sent.headers}


@contextmanager
def plain_server() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """Yield an upstream that keeps bodies as received; the scripted one decompresses them."""
    taken: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            taken.append((headers, self.rfile.read(int(headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", taken
        server.shutdown()
        thread.join(timeout=30)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/chat/completions"])
def test_what_passes_through_keeps_its_bytes(path: str) -> None:
    with plain_server() as (url, taken), running_proxy({}, url) as proxy:
        for encoding, pack in [*PACKERS.values(), ("br", bytes)]:
            packed = pack(b'{"input": "hello"}')
            headers = {**KEYS, "content-encoding": encoding, "x-holdfast-bypass": "on"}
            assert ask(proxy.url + path, packed, headers).status == 204
            received, body = taken[-1]
            assert (received["content-encoding"], body) == (encoding, packed)


@EACH
def test_a_bomb_is_refused_with_413(proxy: Running, packer: str) -> None:
    encoding, pack = PACKERS[packer]
    bomb = pack(b" " * 50 * MOST)
    assert len(bomb) < MOST
    answered = ask(proxy.url + path_of("openai-chat"), bomb, {**KEYS, "content-encoding": encoding})
    assert answered.status == 413
    assert "when it is unpacked" in answered.json["error"]["message"]


@pytest.mark.parametrize("encoding", ["br", "compress", "gzip, gzip, gzip"])
def test_an_encoding_that_is_not_known_is_a_415_that_names_the_others(
    proxy: Running, encoding: str
) -> None:
    headers = {**KEYS, "content-encoding": encoding}
    answered = ask(proxy.url + path_of("anthropic"), b"{}", headers)
    assert answered.status == 415
    assert answered.headers["accept-encoding"] == "gzip, deflate, zstd"
    assert "gzip, deflate, zstd" in answered.json["error"]["message"]


@EACH
def test_a_body_that_is_cut_or_no_such_thing_is_a_400(proxy: Running, packer: str) -> None:
    encoding, pack = PACKERS[packer]
    whole = pack(b'{"secret": "kept out of errors"}' * 50)
    for body in (whole[:-5], b'{"plain": "kept out of errors"}'):
        answered = ask(
            proxy.url + path_of("openai-chat"), body, {**KEYS, "content-encoding": encoding}
        )
        assert answered.status == 400
        assert "not packed as" in answered.json["error"]["message"]
        assert b"kept out" not in answered.body


def test_identity_and_nothing_are_no_encodings() -> None:
    assert unpacked(b"{}", "identity, ", MOST) == b"{}"
    assert unpacked(b"", "gzip", MOST) == b""
    assert unpacked(b"{}", "", 0) == b"{}"


def test_members_and_frames_follow_each_other() -> None:
    for name, pack in (("x-gzip", gzip.compress), ("ZSTD", zstandard.compress)):
        assert unpacked(pack(b"a" * 700) + pack(b"b"), name, MOST) == b"a" * 700 + b"b"


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_endless_empty_parts_are_given_up(name: str, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(WireError, match="not packed as"):
        unpacked(pack(b"") * 50_000, name, MOST)


def test_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    for name, pack in PACKERS.values():
        assert len(unpacked(pack(b"x" * MOST), name, MOST)) == MOST
        with pytest.raises(LimitError):
            unpacked(pack(b"x" * (MOST + 1)), name, MOST)


def test_a_frame_that_wants_too_much_memory_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    greedy = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = greedy.compress(b"x" * 100) + greedy.flush()
    with pytest.raises(WireError, match="not packed as zstd"):
        unpacked(body, "zstd", MOST)


def test_the_offline_model_reads_packed_requests_too() -> None:
    body = gzip.compress(request_in("openai-chat", chat("short", question="What now?")))
    with running_proxy() as proxy:
        for extra in ({}, {"x-holdfast-bypass": "on"}):
            headers = {"content-encoding": "gzip", **extra}
            answered = ask_model(proxy, "openai-chat", body, headers=headers)
            assert answered.status == 200, answered.body
