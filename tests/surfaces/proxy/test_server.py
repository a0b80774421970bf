"""The running proxy with its offline model: every dialect, every route, start and end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pytest
from starlette.routing import Route

import holdfast
from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.store.refs import REF
from holdfast.surfaces.proxy.routes import BARE, PREFIXES
from holdfast.surfaces.proxy.server import application, listen, serve
from tests.fitting.test_citing import chat, log
from tests.surfaces.harness import run_process
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
    usage_of,
)
from tests.surfaces.proxy.upstream import Upstream

NEEDLE = "0312 ERROR the disk of db-7 is full"


def long_log() -> str:
    """Return a log whose relevant line a citation cannot show without a question."""
    lines = log(600).splitlines()
    return "\n".join([*lines[:312], NEEDLE, *lines[313:]])


@pytest.fixture(scope="module")
def proxy() -> Iterator[Running]:
    with running_proxy() as running:
        yield running


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_answered_with_a_quotation_and_usage(
    proxy: Running, dialect: str, stream: bool
) -> None:
    body = request_in(dialect, chat("the build failed with code 7", question="Which code?"),
                      stream=stream)  # fmt: skip
    answered = ask(proxy.url + path_of(dialect, stream=stream), body)
    assert answered.status == 200
    assert answered.headers["content-type"].startswith(
        "text/event-stream" if stream else "application/json"
    )
    text = text_of(dialect, answered, stream=stream)
    assert "> the build failed with code 7" in text or '> {"result"' in text
    assert "offline model" in text
    used, written = usage_of(dialect, answered, stream=stream)
    assert used == int(answered.headers["x-holdfast-tokens"])
    assert written > 10


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_result_is_cited_and_opened_unseen_by_the_client(
    proxy: Running, dialect: str, stream: bool
) -> None:
    question = f"Is the disk full in {dialect} {stream}?"
    body = request_in(dialect, chat(long_log(), question=question), stream=stream)
    answered = ask(proxy.url + path_of(dialect, stream=stream), body)
    assert answered.status == 200
    assert int(answered.headers["x-holdfast-saved"]) > 3000
    assert int(answered.headers["x-holdfast-edits"]) == 2  # cited, and the tool offered
    for kind in (b'tool_calls":[{', b"tool_use", b"functionCall", b"function_call", b"expand_ref"):
        assert kind not in answered.body
    text = text_of(dialect, answered, stream=stream)
    assert "From the stored ref:" in text
    assert NEEDLE in text
    proxy.settled()
    session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
    [turn] = proxy.do(session._store.turns(session.scope))
    assert turn.usage.expansions == 1
    assert turn.usage.input > 2 * turn.usage.predicted  # both calls are billed
    used, _ = usage_of(dialect, answered, stream=stream)
    assert turn.usage.predicted < used < turn.usage.input  # the context is that of the last one


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_conversation_goes_on_in_its_session(proxy: Running, dialect: str) -> None:
    body = chat(long_log(), question=f"Is a disk full, asks {dialect}?")
    first = ask(proxy.url + path_of(dialect), request_in(dialect, body))
    said = text_of(dialect, first)
    body["messages"] += [
        {"role": "assistant", "content": said},
        {"role": "user", "content": "And which step was 77?"},
    ]
    proxy.settled()
    second = ask(proxy.url + path_of(dialect), request_in(dialect, body))
    assert second.status == 200, second.body
    assert second.headers["x-holdfast-session"] == first.headers["x-holdfast-session"]
    assert "step 0-77" in text_of(dialect, second)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_known_of_a_session_is_not_worked_out_again(
    proxy: Running, dialect: str, named: bool
) -> None:
    words = chat("a disk is full", "another is not", question=f"Which, {dialect} {named}?")
    headers = {"x-holdfast-session": f"known {dialect}"} if named else {}
    name = ask_model(proxy, dialect, words, headers=headers).headers["x-holdfast-session"]
    proxy.settled()
    session = proxy.service.engine.session(name)
    assert session.state is not None
    before = session.state.asked.messages
    words["messages"] += [
        {"role": "assistant", "content": "The first."},
        {"role": "user", "content": "Are you sure?"},
    ]
    again = ask_model(proxy, dialect, words, headers=headers)
    assert again.headers["x-holdfast-session"] == name
    # The same objects: their tokens, facts and hashes are remembered with them.
    now = session.state.asked.messages
    assert len(now) == len(before) + 2
    assert all(a is b for a, b in zip(now, before, strict=False))


def test_gemini_without_events_is_a_json_array(proxy: Running) -> None:
    path = path_of("gemini", stream=True).removesuffix("?alt=sse")
    answered = ask(proxy.url + path, request_in("gemini", chat("a disk is full")))
    assert answered.headers["content-type"] == "application/json"
    assert len(answered.json) > 2
    assert answered.json[-1]["candidates"][0]["finishReason"] == "STOP"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/messages/count_tokens", "input_tokens"),
        ("/v1beta/models/gemini-2.5-flash:countTokens", "totalTokens"),
    ],
)
@pytest.mark.parametrize("bypass", ["on", "off"])
def test_tokens_are_counted_without_an_upstream(
    proxy: Running, path: str, name: str, bypass: str
) -> None:
    dialect = "gemini" if "gemini" in path else "anthropic"
    body = request_in(dialect, chat("a disk is full"))
    answered = ask(proxy.url + path, body, {"x-holdfast-bypass": bypass})
    assert answered.status == 200
    assert answered.json[name] > 5


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_bypass_reaches_the_offline_model_too(proxy: Running, stream: bool) -> None:
    body = request_in("anthropic", chat(long_log(), question="Is the disk full?"), stream=stream)
    answered = ask(proxy.url + "/v1/messages", body, {"x-holdfast-bypass": "on"})
    assert answered.status == 200
    assert "x-holdfast-tokens" not in answered.headers
    assert NEEDLE in text_of("anthropic", answered, stream=stream)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"model": 3}', b"null"])
def test_a_body_that_is_no_request_is_refused_in_the_dialect(
    proxy: Running, dialect: str, body: bytes
) -> None:
    answered = ask(proxy.url + path_of(dialect), body, method="POST")
    assert answered.status == 400
    assert answered.json["error"]["message"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_savings_are_what_the_request_had_less_what_was_sent(proxy: Running, dialect: str) -> None:
    words = chat(*(log(60, seed) for seed in range(6)), question=f"Which step in {dialect}?")
    body = request_in(dialect, words)
    model = "gemini-2.5-flash" if dialect == "gemini" else None
    before = holdfast.count(body, dialect=dialect, model=model).tokens
    for _ in range(2):  # earlier decisions save tokens again
        answered = ask_model(proxy, dialect, body, headers={"x-holdfast-budget": "3000"})
        sent = int(answered.headers["x-holdfast-tokens"])
        assert sent <= 3000 < before
        # The offline model opens a ref, whose tokens are not saved.
        read = int(answered.headers.get("x-holdfast-input-tokens", sent))
        assert int(answered.headers["x-holdfast-saved"]) == before - read
        proxy.settled()


@pytest.mark.parametrize(
    "odd", [{"stream": None}, {"stream": "yes"}, {"stream": True, "stream_options": None},
            {"stream": True, "stream_options": 3}]
)  # fmt: skip
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_ways_to_ask_for_a_stream_are_no_bug(
    proxy: Running, dialect: str, odd: dict[str, Any]
) -> None:
    body = json.loads(request_in(dialect, chat("a disk is full")))
    answered = ask(proxy.url + path_of(dialect), {**body, **odd})
    assert answered.status == 200
    assert "offline model" in answered.body.decode()


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1beta/models/m:countTokens"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"generateContentRequest": 3}'])
def test_what_cannot_be_counted_is_refused(proxy: Running, path: str, body: bytes) -> None:
    assert ask(proxy.url + path, body, method="POST").status == 400


def test_no_slash_sends_a_client_elsewhere(proxy: Running) -> None:
    body = request_in("anthropic", chat("a disk is full"))
    assert ask(f"{proxy.url}/v1/messages/", body).status == 200
    for path in ("/v1", "/healthz/", "/v1beta"):
        assert ask(proxy.url + path).status == 404


def test_a_path_without_an_upstream_says_what_to_do(proxy: Running) -> None:
    answered = ask(f"{proxy.url}/v1/files")
    assert answered.status == 404
    assert "--openai https://api.openai.com" in answered.json["error"]["message"]


def test_what_is_no_path_of_the_proxy_is_not_found(proxy: Running) -> None:
    assert ask(f"{proxy.url}/elsewhere").status == 404


def test_a_body_that_is_too_large_is_refused() -> None:
    with running_proxy({"max_body_bytes": 20_000}) as running:
        body = request_in("openai-chat", chat("x" * 20_000))
        answered = ask(running.url + "/v1/chat/completions", body)
        assert answered.status == 413
        assert "20,000 bytes" in answered.json["error"]["message"]
        small = request_in("openai-chat", chat("x" * 10_000))
        assert ask(running.url + "/v1/chat/completions", small).status == 200


def begun(running: Running, *parts: bytes) -> http.client.HTTPResponse:
    """The answer to a request whose body never ends."""
    address = urlsplit(running.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n")
        client.sendall(b"transfer-encoding: chunked\r\n\r\n")
        for part in parts:
            client.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        response = http.client.HTTPResponse(client)
        response.begin()
        response.read()
        return response


def test_a_body_without_an_end_is_refused() -> None:
    with running_proxy({"max_body_bytes": 20_000}) as running:
        assert begun(running, *[b"x" * 10_000] * 5).status == 413


def test_a_body_that_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.surfaces.proxy.incoming_request.BODY_SECONDS", 0.1)
    with running_proxy() as running:
        assert begun(running, b"{").status == 408


def test_what_was_cited_outlives_the_proxy(tmp_path: Path) -> None:
    store = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    body = request_in("openai-chat", chat(long_log(), question="Is the disk full?"))
    with running_proxy(store) as running:
        first = ask(running.url + "/v1/chat/completions", body)
    with running_proxy(store) as running:
        again = ask(running.url + "/v1/chat/completions", body)
        assert again.headers["x-holdfast-session"] == first.headers["x-holdfast-session"]
        engine = running.service.engine
        refs = [info.ref_id for info in running.do(engine.store.refs(engine.scope))]
        contents = [running.do(engine.store.get(engine.scope, ref)) for ref in refs]
        assert long_log().encode() in [stored.data for stored in contents if stored]


def test_the_offline_model_teaches_the_counter_nothing(proxy: Running) -> None:
    # Its usage is our own count: to learn from it would claim an accuracy that nobody checked.
    before = proxy.service.engine.calibration.dump()
    ask(proxy.url + "/v1/messages", request_in("anthropic", chat("a disk is full")))
    proxy.settled()
    assert proxy.service.engine.calibration.dump() == before


# --- who may ask ---------------------------------------------------------------------------------

TOKEN = "a token for tests"
FOREIGN: dict[str, dict[str, str]] = {
    "host": {"host": "evil.example", "x-holdfast-token": TOKEN},
    "origin": {"origin": "https://evil.example", "x-holdfast-token": TOKEN},
    "broken host": {"host": "[::1", "x-holdfast-token": TOKEN},
    "broken origin": {"origin": "https://[::1", "x-holdfast-token": TOKEN},
    "origin on another port": {"origin": "http://127.0.0.1:1", "x-holdfast-token": TOKEN},
    "origin in a name": {"origin": "https://localhost.evil.example", "x-holdfast-token": TOKEN},
    "origin of a served name on another port": {
        "origin": "https://holdfast.example:9443",
        "x-holdfast-token": TOKEN,
    },
    "cross-site": {"sec-fetch-site": "cross-site", "x-holdfast-token": TOKEN},
    "another port of this machine": {"sec-fetch-site": "same-site", "x-holdfast-token": TOKEN},
    "null origin": {"origin": "null", "x-holdfast-token": TOKEN},
    "token": {},
    "wrong token": {"authorization": "Bearer guess"},
}


OPEN = {"/healthz", "/login", "/static/icon.svg", "/static/live.js", "/static/style.css"}
"""What anybody may see who has reached the proxy: that it lives, and where to log in."""


def test_every_route_denies_by_default() -> None:
    names = ["holdfast.example", "holdfast.example:8443"]
    with running_proxy({"serve_token": TOKEN, "serve_names": names}) as running:
        pages = [_example(route) for route in application(running.service).routes]
        paths = [*pages, *(f"{prefix}x" for prefix in PREFIXES), *BARE]
        assert {"/healthz", "/v1/x", "/v1beta/x", "/v1alpha/x"} <= set(paths)
        for path in (*paths, "/nowhere"):
            for name, headers in FOREIGN.items():
                for method in ("GET", "POST", "OPTIONS"):
                    logs_in = path == "/login" and method == "POST"
                    open_to_all = path in OPEN and "token" in name and not logs_in
                    status = ask(running.url + path, headers=headers, method=method).status
                    # After a hundred wrong tokens in a minute, the next are not even looked at.
                    wanted = (401, 429) if "token" in name else (403,)
                    assert (status in wanted) is not open_to_all, (path, name, method)
        assert ask(f"{running.url}/healthz").body == b"ok\n"


@pytest.mark.parametrize("path", ["/healthz", "/stats", "/metrics", "/", "/nowhere"])
def test_what_the_proxy_says_of_itself_cannot_be_sniffed_framed_or_kept(path: str) -> None:
    with running_proxy({"serve_token": TOKEN}) as running:
        for headers in ({"x-holdfast-token": TOKEN}, {}):
            answered = ask(running.url + path, headers=headers)
            if answered.status == 404:
                continue  # none of our objects
            assert answered.headers["x-content-type-options"] == "nosniff"
            assert answered.headers["x-frame-options"] == "DENY"
            assert answered.headers["cache-control"] == "no-store"
            assert answered.headers["content-security-policy"].startswith("default-src 'none'")


def _example(route: Any) -> str:
    assert isinstance(route, Route)
    return route.path_format.replace("{path}", "x").replace("{", "").replace("}", "")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-holdfast-token": TOKEN},
        {"authorization": f"Bearer {TOKEN}"},
        {"authorization": f"bearer {TOKEN}"},
        {"authorization": f"BEARER  {TOKEN}"},
        {"authorization": TOKEN},
        {"x-api-key": TOKEN},
        {"x-goog-api-key": TOKEN},
        {"x-holdfast-token": TOKEN, "host": "localhost:1", "origin": "http://localhost:1"},
        {"x-holdfast-token": TOKEN, "host": "[::1]:1", "origin": "http://[::1]:1"},
        {"x-holdfast-token": TOKEN, "host": "holdfast.example"},
        {"x-holdfast-token": TOKEN, "origin": "https://holdfast.example"},
        {"x-holdfast-token": TOKEN, "origin": "https://holdfast.example:8443"},
        {"x-holdfast-token": TOKEN, "sec-fetch-site": "same-origin"},
        {"x-holdfast-token": TOKEN, "sec-fetch-site": "none"},
    ],
)
def test_the_token_opens_the_proxy_in_any_header(headers: dict[str, str]) -> None:
    names = ["holdfast.example", "holdfast.example:8443"]
    with running_proxy({"serve_token": TOKEN, "serve_names": names}) as running:
        body = request_in("anthropic", chat("a disk is full"))
        assert ask(f"{running.url}/v1/messages", body, headers).status == 200


# --- start and end -------------------------------------------------------------------------------


def test_other_machines_need_a_token() -> None:
    with pytest.raises(SettingsError, match="serve_token"):
        listen(Settings(serve_host="0.0.0.0", serve_port=0))
    listen(Settings(serve_host="0.0.0.0", serve_port=0, serve_token=TOKEN)).close()


def test_pieces_of_an_answer_do_not_wait_for_each_other() -> None:
    # Without TCP_NODELAY each answer takes 40 ms more, which asyncio sets on TCP sockets only.
    with running_proxy() as running:
        address = urlsplit(running.url)
        client = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        with closing(client):
            client.request("GET", "/healthz")
            client.getresponse().read()
            [connection] = running.server.server_state.connections
            taken = connection.transport.get_extra_info("socket")
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        client.close()


def test_a_port_in_use_is_an_error_with_a_next_step() -> None:
    with listen(Settings(serve_port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match="--port"):
            listen(Settings(serve_port=port))


def test_a_name_that_is_no_address_is_an_error() -> None:
    with pytest.raises(SettingsError, match="cannot listen"):
        listen(Settings(serve_host="no such host.invalid", serve_port=0, serve_token=TOKEN))


def test_a_store_that_cannot_be_opened_ends_the_start(tmp_path: Path) -> None:
    from holdfast.errors import StoreError  # noqa: PLC0415

    (tmp_path / "file").write_text("no folder")
    settings = Settings(serve_port=0, store_url=f"sqlite:///{tmp_path}/file/store.db")
    with pytest.raises(StoreError):
        serve(settings, started=lambda _: pytest.fail("it started"))


class Process:
    """`holdfast serve` as users run it."""

    def __init__(self, folder: Path, *options: str) -> None:
        kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "serve", "--port", "0", *options],
            stderr=subprocess.PIPE,
            cwd=folder,
            env=kept | {"HOME": str(folder), "PYTHONUTF8": "1"},
            text=True,
        )
        assert self.process.stderr is not None
        self.stderr: IO[str] = self.process.stderr
        first = self.stderr.readline()
        self.url = next((w for w in first.split() if w.startswith("http://")), "")
        self.said = first

    def end(self) -> tuple[int, str]:
        rest = self.stderr.read()
        code = self.process.wait(timeout=30)
        self.stderr.close()
        return code, self.said + rest

    def end_well(self) -> str:
        """Wait for the end, which must be no failure, and return all that was logged."""
        code, said = self.end()
        assert code == 0, said
        assert "Traceback" not in said
        return said


def assert_answered(client: socket.socket, body: bytes) -> None:
    """Send the body that an open request still lacks, and read its stream to the end."""
    client.sendall(body)
    response = http.client.HTTPResponse(client)
    response.begin()
    assert response.status == 200
    assert response.read().endswith(b"data: [DONE]\n\n")


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_open_requests_end_and_closes_the_store(
    tmp_path: Path, kind: signal.Signals
) -> None:
    process = Process(tmp_path)
    address = urlsplit(process.url)
    body = request_in("openai-chat", chat(long_log(), question="Is the disk full?"), stream=True)
    with socket.create_connection((address.hostname, address.port)) as open_request:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}"
        )
        open_request.sendall(head.encode() + b"\r\nexpect: 100-continue\r\n\r\n")
        # The proxy reports that it waits for the body: so the request is open when the signal
        # comes.
        assert open_request.recv(100).startswith(b"HTTP/1.1 100")
        process.process.send_signal(kind)
        assert_answered(open_request, body)
    said = process.end_well()
    assert "event=stopped" in said
    assert not list((tmp_path / ".local" / "share" / "holdfast").glob("*-wal"))


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
def test_a_second_signal_drops_an_answer_that_does_not_end(tmp_path: Path) -> None:
    with Upstream() as provider:
        provider.always = faults.stall_midway
        process = Process(tmp_path, "--openai", provider.url)
        body = request_in("openai-chat", chat("short"), stream=True)
        address = urlsplit(process.url)
        client = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        client.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {KEY}"})
        response = client.getresponse()
        assert response.status == 200
        assert provider.waiting.acquire(timeout=30)
        process.process.terminate()
        while is_listening(process.url):  # until the first signal has been taken
            pass
        process.process.terminate()
        code, told = process.end()
        response.close()  # which holds the socket of a client that is closed
        client.close()
        assert provider.left.acquire(timeout=30)  # its upstream call was cancelled
    assert code == 0, told
    assert "Traceback" not in told
    assert "event=stopped" in told
    assert "not_written" not in told
    assert "store_unavailable" not in told
    stats = run_process("stats", "--output", "json", folder=tmp_path)
    assert json.loads(stats.stdout)["totals"]["turns"] == 1, "the provider was asked once"


def test_an_answer_that_does_not_end_is_dropped_after_a_while() -> None:
    with Upstream() as provider:
        provider.always = faults.stall_midway
        with running_proxy({}, provider.url) as running:
            running.server.config.timeout_graceful_shutdown = 1
            address = urlsplit(running.url)
            client = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
            body = request_in("openai-chat", chat("short"), stream=True)
            client.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {KEY}"})
            response = client.getresponse()
            assert provider.waiting.acquire(timeout=30)
        response.close()
        client.close()
        assert provider.left.acquire(timeout=30)


def is_listening(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("asked_for", "status", "where"),
    [((), 404, "no upstream: give --gemini URL"), (("--offline",), 200, "the offline model")],
)
def test_serve_says_where_it_listens_and_where_requests_go(
    tmp_path: Path, asked_for: tuple[str, ...], status: int, where: str
) -> None:
    process = Process(tmp_path, "--store", "memory:", "--openai", "http://127.0.0.1:9", *asked_for)
    answered = ask(f"{process.url}/v1/messages", request_in("anthropic", chat("a disk is full")))
    assert answered.status == status
    process.process.terminate()
    code, said = process.end()
    assert code == 0
    assert f"OPENAI_BASE_URL={process.url}/v1" in said
    assert f"ANTHROPIC_BASE_URL={process.url}\n" in said
    assert "openai    → http://127.0.0.1:9" in said
    assert f"gemini    → {where}" in said
    assert "disk" not in said  # content is never logged


def test_logs_hold_ids_and_counts_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "holdfast")
    with running_proxy() as running:
        for dialect in DIALECTS:
            body = request_in(dialect, chat("swordfish " * 400, question="swordfish?"))
            ask(running.url + path_of(dialect), body)
        ask(f"{running.url}/v1/files/swordfish?x=swordfish")
        ask(f"{running.url}/v1/messages", b'{"swordfish": ')
    assert len(caplog.records) >= 6
    assert "swordfish" not in caplog.text
    assert not REF.search(caplog.text)


def test_the_answer_is_valid_json_in_whole(proxy: Running) -> None:
    answered = ask(proxy.url + "/v1/chat/completions", request_in("openai-chat", chat("disk é 🐙")))
    json.loads(answered.body)
    assert int(answered.headers["content-length"]) == len(answered.body)


def test_one_session_may_speak_several_dialects() -> None:
    with running_proxy() as proxy:
        named = {"x-holdfast-session": "one"}
        for dialect in (*DIALECTS, *reversed(DIALECTS)):
            body = request_in(dialect, chat(log(200), question="What of step 0-77?"))
            answered = ask_model(proxy, dialect, body, headers=named)
            assert answered.status == 200, answered.body


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/responses", "/v1/responses"),
        ("/messages", "/v1/messages"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
    ],
)
def test_a_client_with_a_wrong_base_url_is_told(proxy: Running, path: str, wanted: str) -> None:
    answered = ask(proxy.url + path, {"messages": []})
    assert answered.status == 404
    said = answered.json["error"]["message"]
    assert f"{wanted} was meant" in said
    assert "base URL" in said
    assert ("type" in answered.json) == wanted.endswith("messages")  # as Anthropic's clients read
