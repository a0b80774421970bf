"""Daily limits count every path that reaches an upstream; a shared key opens nobody's objects."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.settings import DailyLimit, Settings, UpstreamEntry
from holdfast.store import Scope, Store
from holdfast.store.opening import open_memory
from holdfast.store.sqlite import SqliteStore
from holdfast.store.usage_ledger import Amount
from holdfast.surfaces.proxy import upstream_calls
from holdfast.surfaces.proxy.allowance import LEASE_SECONDS, AllowanceError, Allowances
from holdfast.surfaces.proxy.provider_objects import (
    NotSharedError,
    created_names,
    references,
    shared_path,
)
from holdfast.surfaces.proxy.request_facts import estimate_call, is_free, read_facts
from holdfast.surfaces.proxy.upstreams import outgoing_headers
from holdfast.tokens.limits import ModelContextRegistry
from holdfast.upstream.upstreams import Upstream as UpstreamSettings
from tests.surfaces.proxy.harness import Answered, Running, ask, running_proxy

OUR_KEY = UpstreamEntry(key="sk-settings")
TEAMS: dict[str, Any] = {
    "tenant_by": "key",
    "serve_token": "for-all",
    "serve_tokens": {"ann": "of-ann", "ben": "of-ben"},
    "upstreams": dict.fromkeys(("openai", "anthropic", "gemini"), OUR_KEY),
}
NOON = 1_800_014_400.0
ANN, BEN = {"x-holdfast-token": "of-ann"}, {"x-holdfast-token": "of-ben"}
CHAT = {"model": "gpt-4o", "max_tokens": 20, "messages": [{"role": "user", "content": "Hello?"}]}


class Provider:
    """A provider that reports 40 tokens for everything, and gives every object the next id."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.answering = threading.Event()
        self.answering.set()
        self.arrived = threading.Semaphore(0)
        self.url = ""

    def answer(self, method: str, path: str) -> dict[str, Any]:
        self.paths.append(f"{method} {path}")
        self.arrived.release()
        self.answering.wait(20)
        name = f"{'resp' if 'responses' in path else 'file'}_{len(self.paths)}"
        usage = {"prompt_tokens": 30, "completion_tokens": 10}
        if "responses" in path:
            usage = {"input_tokens": 30, "output_tokens": 10}
        message = {"role": "assistant", "content": "Yes."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": name, "object": "x", "status": "completed", "output": [], "usage": usage,
                "choices": [choice]}  # fmt: skip


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider on a free port."""
    double = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.dumps(double.answer(self.command, self.path)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _any  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 64
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    double.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield double
    finally:
        double.answering.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def limited(**settings: Any) -> Iterator[tuple[Running, Provider]]:
    with (
        provider() as double,
        running_proxy(TEAMS | settings, upstream=double.url) as proxy,
    ):
        yield proxy, double


def used(proxy: Running, tenant: str) -> tuple[int, int]:
    """Tokens used today, and calls that hold a reservation."""
    allowances = proxy.service.allowances
    day = int(allowances.now() // 86_400)
    use = proxy.do(proxy.service.engine.store.ledger.day_use(Scope("local", tenant), day))
    return use.used.tokens, use.open_calls


def posted(proxy: Running, path: str, headers: Mapping[str, str], **body: Any) -> Answered:
    return ask(proxy.url + path, CHAT | body, {"content-type": "application/json", **headers})


# --- daily limits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/chat/completions", {"x-holdfast-bypass": "1"}),
        ("/v1//chat/completions", {}),
        ("/v1/chat/completions/", {"x-holdfast-bypass": "1"}),
        ("/v1/chat%2fcompletions", {}),
        ("/openai/v1//chat/completions", {"x-holdfast-bypass": "1"}),
        ("/v1/embeddings", {}),
        ("/v1/completions", {}),
        ("/v1/images/generations", {}),
        ("/v1/responses", {"x-holdfast-bypass": "1"}),
    ],
)
def test_every_path_that_reaches_a_provider_counts(path: str, headers: dict[str, str]) -> None:
    with limited(daily_limit=DailyLimit(100)) as (proxy, double):
        for so_far in (40, 80, 120):
            answered = posted(proxy, path, ANN | headers, input="Hello?", prompt="Hello?")
            assert answered.status == 200, answered.body
            assert used(proxy, "team-ann") == (so_far, 0), "input and output, once"
        refused = posted(proxy, path, ANN | headers, input="Hello?", prompt="Hello?")
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json["error"]["message"]
        assert len(double.paths) == 3
        assert posted(proxy, path, BEN | headers, input="Hello?", prompt="Hello?").status == 200


def test_junk_keys_beside_a_token_are_one_tenant() -> None:
    with limited(daily_limit=DailyLimit(100)) as (proxy, double):
        for n in range(6):
            junk = {"authorization": f"Bearer junk-{n}", "x-api-key": f"{n}", "api-key": f"k{n}"}
            posted(proxy, "/v1/chat/completions", {"x-holdfast-token": "for-all", **junk})
        assert len(double.paths) == 3
        assert used(proxy, "token") == (120, 0)


def test_junk_beside_ones_own_key_counts_for_the_key() -> None:
    settings = {"tenant_by": "key", "daily_limit": DailyLimit(100)}
    with provider() as double, running_proxy(settings, upstream=double.url) as proxy:
        for n in range(6):
            keys = {"authorization": "Bearer sk-own", "x-api-key": f"junk-{n}", "api-key": f"{n}"}
            posted(proxy, "/v1/chat/completions", keys)
        assert len(double.paths) == 3
        assert posted(proxy, "/v1/completions", {"authorization": "Bearer sk-2"}).status == 200


def test_whatever_header_a_gateway_reads_the_key_from_it_counts() -> None:
    settings = {"tenant_by": "key", "daily_limit": DailyLimit(100)}
    with provider() as double, running_proxy(settings, upstream=double.url) as proxy:
        for n in range(6):
            posted(proxy, f"/v1/completions?key=junk-{n}", {"x-api-key": "own"})
        assert len(double.paths) == 3


def test_of_thirty_at_once_only_those_go_out_that_fit() -> None:
    with limited(daily_limit=DailyLimit(1_000)) as (proxy, double):
        double.answering.clear()
        with ThreadPoolExecutor(30) as clients:
            answers = [
                clients.submit(posted, proxy, "/v1/completions", ANN, prompt="Hello?")
                for _ in range(30)
            ]
            # Each may take its bytes and 20 tokens of an answer.
            most = 1_000 // (len(json.dumps(CHAT | {"prompt": "Hello?"})) + 20)
            refused = [one for one in _until(answers, 30 - most) if one.status == 429]
            assert len(refused) == 30 - most
            assert {one.headers["retry-after"] for one in refused} == {"1"}
            double.answering.set()
            assert sum(answer.result(20).status == 200 for answer in answers) == most
        assert used(proxy, "team-ann") == (40 * most, 0)


def _until(answers: list[Any], number: int) -> list[Answered]:
    """Wait until a number of requests are answered; the others wait for the provider."""
    ended = threading.Semaphore(0)
    for answer in answers:
        answer.add_done_callback(lambda _: ended.release())
    for _ in range(number):
        assert ended.acquire(timeout=20)
    return [answer.result() for answer in answers if answer.done()]


def test_who_leaves_before_the_answer_pays_what_it_may_have_been() -> None:
    with limited(daily_limit=DailyLimit(1_000)) as (proxy, double):
        double.answering.clear()
        parts = urlsplit(proxy.url)
        body = json.dumps(CHAT).encode()
        head = (
            "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-holdfast-token: of-ann\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((parts.hostname, parts.port)) as client:
            client.sendall(head.encode() + body)
            assert double.arrived.acquire(timeout=20)
            assert used(proxy, "team-ann") == (0, 1)
        watched = proxy.service.telemetry
        while watched.open_requests:
            proxy.settled()
        proxy.settled()
        assert used(proxy, "team-ann") == (len(body) + 20, 0)


async def _earliest_expiry(store: Store) -> float:
    assert isinstance(store, SqliteStore)
    expiry = await store._readers.read(
        lambda db: db.execute("SELECT min(expires_at) FROM reservations").get
    )
    return float(expiry)


def test_a_call_that_lasts_keeps_its_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who reads slowly for as long as a reservation lives could begin the day anew."""
    monkeypatch.setattr(upstream_calls, "RENEW_SECONDS", 0.001)
    with limited(daily_limit=DailyLimit(1_000)) as (proxy, double):
        double.answering.clear()
        allowances, now = proxy.service.allowances, [NOON]
        allowances._clock = lambda: now[0]
        with ThreadPoolExecutor(1) as client:
            slow = client.submit(posted, proxy, "/v1/completions", ANN)
            assert double.arrived.acquire(timeout=20)
            now[0] += LEASE_SECONDS - 1
            for _ in range(5_000):  # each takes its turn in the proxy's loop, as the renewal does
                if proxy.do(_earliest_expiry(proxy.service.engine.store)) > now[0] + 2:
                    break
                proxy.settled()
            else:
                double.answering.set()
                pytest.fail("the reservation was not renewed")
            now[0] += 2
            refused = posted(proxy, "/v1/completions", ANN, max_tokens=900)
            assert refused.status == 429
            double.answering.set()
            assert slow.result(20).status == 200
        assert used(proxy, "team-ann") == (40, 0)


def test_what_a_dead_process_had_reserved_counts_with_its_input() -> None:
    async def main() -> None:
        store, now, scopes = open_memory(), [NOON], [Scope("u", "w")]
        dead = Allowances(Settings(daily_limit=DailyLimit(100)), store, lambda: now[0])
        await dead.reserve(scopes, Amount(100), Amount(30))
        living = Allowances(Settings(daily_limit=DailyLimit(100)), store, lambda: now[0])
        with pytest.raises(AllowanceError, match="under way"):
            await living.reserve(scopes, Amount(1), Amount())
        now[0] += LEASE_SECONDS
        [hold] = await living.reserve(scopes, Amount(60), Amount())
        await living.settle([hold], Amount(10))
        use = await store.ledger.day_use(scopes[0], hold.reservation.day)
        assert (use.used, use.open_calls) == (Amount(40), 0)

    asyncio.run(main())


def test_what_a_provider_refuses_costs_nothing() -> None:
    with running_proxy(
        TEAMS | {"daily_limit": DailyLimit(100)}, upstream="http://127.0.0.1:1"
    ) as proxy:
        assert posted(proxy, "/v1/completions", ANN).status == 502
        proxy.settled()
        assert used(proxy, "team-ann") == (0, 0)


# --- estimates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "output", "is_held"),
    [
        ({"max_tokens": 7}, 7, False),
        ({"max_completion_tokens": 7, "n": 3}, 21, False),
        ({"generationConfig": {"maxOutputTokens": 7, "candidateCount": 2}}, 14, False),
        ({"inferenceConfig": {"maxTokens": 7}}, 7, False),
        ({"requests": [{"params": {"max_tokens": 7}}, {"params": {"max_tokens": 5}}]}, 12, False),
        ({"requests": [{"params": {"max_tokens": 7}}, {"params": {}}]}, None, False),
        ({"max_tokens": True}, None, False),
        ({"max_tokens": -1}, None, False),
        ({"previous_response_id": "resp_1"}, None, True),
        ({"messages": [{"content": [{"image_url": {"url": "https://a.example"}}]}]}, None, True),
        ({"messages": [{"content": [{"image_url": {"url": "data:image/png;base64,AA"}}]}]}, None,
         False),
        ({"tools": [{"type": "web_search"}]}, None, True),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, None, False),
    ],
)  # fmt: skip
def test_what_a_request_may_take(body: dict[str, Any], output: int | None, is_held: bool) -> None:
    facts = read_facts(json.dumps(body | {"model": "gpt-4o"}).encode(), "openai")
    assert (facts.output, facts.is_held) == (output, is_held)
    estimate = estimate_call(facts, ModelContextRegistry(), "/v1/chat/completions")
    assert estimate.output == (output or 16_384)
    assert (estimate.input >= 128_000) is is_held, "a history can be as long as the window"
    embedding = estimate_call(facts, ModelContextRegistry(), "/v1/embeddings")
    assert embedding.output == 0


@pytest.mark.parametrize(
    ("method", "path", "has_body", "free"),
    [
        ("GET", "/v1/models", False, True),
        ("GET", "/v1/chat/completions", True, False),
        ("POST", "/v1/files", True, True),
        ("POST", "/v1/files/../chat/completions", True, False),
        ("POST", "/v1/files/a%2f..%2fchat", True, False),
        ("POST", "/v1/responses/resp_1/cancel", True, True),
        ("POST", "/v1/Files", True, False),
        ("POST", "/v1/vector_stores/vs_1/search", True, False),
    ],
)
def test_what_is_billed_by_nobody_is_free(
    method: str, path: str, has_body: bool, free: bool
) -> None:
    assert is_free(method, path, has_body=has_body) is free


# --- objects under a shared key ------------------------------------------------------------------


def test_a_tenant_opens_its_own_objects_and_nobody_elses() -> None:
    with limited() as (proxy, double):
        response = posted(proxy, "/v1/responses", ANN, input="Hello?").json["id"]
        upload = ask(f"{proxy.url}/v1/files", {"purpose": "user_data"}, ANN).json["id"]
        before = len(double.paths)
        attacks = [
            ask(f"{proxy.url}/v1/responses/{response}", headers=BEN),
            ask(f"{proxy.url}/v1/responses/{response}", headers=BEN, method="DELETE"),
            ask(f"{proxy.url}/v1/files/{upload}/content", headers=BEN),
            posted(proxy, "/v1/responses", BEN, input="And?", previous_response_id=response),
            posted(proxy, "/v1/responses", BEN | {"x-holdfast-bypass": "1"},
                   input="And?", previous_response_id=response),
            posted(proxy, "/v1/embeddings", BEN, input="x", file_id=upload),
        ]  # fmt: skip
        assert [answered.status for answered in attacks] == [404] * 6
        assert all("error" in answered.json for answered in attacks)
        assert len(double.paths) == before, "nothing reached the provider"
        assert ask(f"{proxy.url}/v1/responses/{response}", headers=ANN).status == 200
        assert ask(f"{proxy.url}/v1/files/{upload}", headers=ANN).status == 200
        going_on = posted(proxy, "/v1/responses", ANN, input="And?", previous_response_id=response)
        assert going_on.status == 200, going_on.body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/files"),
        ("GET", "/v1/batches"),
        ("POST", "/v1/batches"),
        ("POST", "/v1/fine_tuning/jobs"),
        ("POST", "/v1/realtime/client_secrets"),
        ("GET", "/v1/organization/admin_api_keys"),
        ("GET", "/v1beta/files"),
        ("POST", "/v1/threads"),
    ],
)
def test_other_paths_are_closed_where_the_key_is_shared(method: str, path: str) -> None:
    with limited() as (proxy, double):
        answered = ask(proxy.url + path, b"{}" if method == "POST" else None, ANN, method)
        assert answered.status == 403, answered.body
        assert "error" in answered.json
        assert double.paths == []


def test_without_tokens_all_tenants_are_one_persons() -> None:
    settings = {"tenant_by": "key", "upstreams": {"openai": OUR_KEY}}
    with provider() as double, running_proxy(settings, upstream=double.url) as proxy:
        assert ask(f"{proxy.url}/v1/files").status == 200
        assert ask(f"{proxy.url}/v1/responses/resp_1").status == 200
        assert len(double.paths) == 2


def test_with_the_clients_own_key_nothing_is_refused() -> None:
    with provider() as double, running_proxy({"tenant_by": "key"}, upstream=double.url) as proxy:
        own = {"authorization": "Bearer sk-own"}
        for path in ("/v1/files", "/v1/responses/resp_of_anybody", "/v1/batches"):
            assert ask(proxy.url + path, headers=own).status == 200
        answered = posted(proxy, "/v1/embeddings", own, file_id="file-of-anybody")
        assert answered.status == 200
        assert len(double.paths) == 4


@pytest.mark.parametrize(
    ("family", "body", "names"),
    [
        ("openai", {"previous_response_id": "a", "conversation": {"id": "b"}}, {"a", "b"}),
        ("openai", {"input": [{"type": "item_reference", "id": "a"}, {"id": "b"}]}, {"a", "b"}),
        ("openai", {"input": [{"type": "reasoning", "id": "a", "summary": []}]}, {"a"}),
        ("openai", {"input": [{"type": "reasoning", "id": "a", "encrypted_content": "x"}]}, set()),
        ("openai", {"input": [{"type": "message", "id": "a", "content": "b"}]}, set()),
        ("openai", {"tools": [{"type": "f", "vector_store_ids": ["a", "b"]}]}, {"a", "b"}),
        ("openai", {"prompt": {"id": "a"}}, {"a"}),
        ("openai", {"prompt": "a text", "metadata": {"file_id": "a"}}, set()),
        ("openai", {"tools": [{"parameters": {"default": {"file_id": "a"}}}]}, set()),
        ("anthropic", {"container": {"id": "a"}, "x": [{"source": {"file_id": "b"}}]}, {"a", "b"}),
        ("anthropic", {"content": [{"type": "tool_use", "input": {"file_id": "a"}}]}, set()),
        ("openai", {"type": "tool_use", "input": [{"file_id": "a"}]}, {"a"}),
        ("gemini", {"cached_content": "cachedContents/a"}, {"cachedContents/a"}),
        ("gemini", {"fileData": {"fileUri": "https://g.example/v1beta/files/a"}}, {"files/a"}),
        ("gemini", {"fileData": {"fileUri": "https://youtu.be/a"}}, set()),
        ("gemini", {"functionCall": {"args": {"file_id": "a"}}}, set()),
        ("bedrock", {"source": {"s3Location": {"uri": "s3://b/k"}}}, {"bucket"}),
    ],
)  # fmt: skip
def test_ids_are_read_where_providers_look_for_them(
    family: Any, body: dict[str, Any], names: set[str]
) -> None:
    assert set(references(body, family)) == names


def test_an_id_that_a_request_or_a_model_wrote_makes_nobody_its_owner() -> None:
    """A provider returns metadata and schemas, and a model writes whatever it is asked to."""
    answer = {
        "id": "resp_1",
        "metadata": {"id": "theirs", "file_id": "theirs"},
        "text": {"format": {"schema": {"file_id": "theirs"}}},
        "tools": [{"container": "theirs", "vector_store_ids": ["theirs"]}],
        "output": [
            {"type": "function_call", "id": "fc_1", "arguments": '{"file_id": "theirs"}'},
            {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1"},
        ],
        "content": [{"type": "tool_use", "id": "t", "input": {"file_id": "theirs"}}],
    }
    assert created_names(answer) == {"resp_1", "fc_1", "ci_1", "cntr_1"}


@pytest.mark.parametrize(
    "path",
    ["/v1/files/a/b", "/v1/files/..", "/v1/files/a%2fb", "/v1/FILES/a", "/v1/files/a;b", "/v1/x",
     "/v1/responses", "/v1/files/a/content/x", "/", ""],
)  # fmt: skip
def test_paths_that_only_look_like_open_ones_are_closed(path: str) -> None:
    with pytest.raises(NotSharedError):
        shared_path("GET", path, "anthropic")


def test_a_client_chooses_neither_method_nor_account_with_the_settings_key() -> None:
    headers = [("x-http-method-override", "POST"), ("openai-project", "p"),
               ("openai-organization", "o"), ("x-goog-user-project", "p")]  # fmt: skip
    shared = UpstreamSettings("openai", "http://a.example", "key")
    assert outgoing_headers(shared, headers) == {"authorization": "Bearer key"}
    own = UpstreamSettings("openai", "http://a.example")
    assert set(outgoing_headers(own, headers)) == {name for name, _ in headers[1:]}


# --- the frame of a request ----------------------------------------------------------------------


def test_a_body_with_two_lengths_is_refused() -> None:
    with limited() as (proxy, double):
        parts = urlsplit(proxy.url)
        with socket.create_connection((parts.hostname, parts.port)) as client:
            client.sendall(
                b"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-holdfast-token: of-ann\r\n"
                b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
                b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
            )
            answer = b""
            while piece := client.recv(65_536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1 ") == 1, "what stands behind it is not read"
        assert double.paths == []


def test_a_tenant_that_is_named_twice_is_refused() -> None:
    named = TEAMS | {"tenant_by": "header"}
    with provider() as double, running_proxy(named, upstream=double.url) as proxy:
        parts = urlsplit(proxy.url)
        body = json.dumps(CHAT).encode()
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            with socket.create_connection((parts.hostname, parts.port)) as client:
                client.sendall(
                    f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-holdfast-token: for-all\r\n"
                    f"x-holdfast-tenant: ann\r\nx-holdfast-tenant: ben\r\nconnection: close\r\n"
                    f"content-length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                answer = b""
                while piece := client.recv(65_536):
                    answer += piece
            assert answer.startswith(b"HTTP/1.1 400"), answer[:300]
        assert double.paths == []


@pytest.mark.parametrize("is_background", [True, False])
def test_an_answer_in_the_background_counts_whole_where_its_client_leaves(
    is_background: bool,
) -> None:
    """It continues without its client, who can fetch all of it later at no cost."""
    body = {"model": "gpt-4o", "background": is_background, "max_output_tokens": 10_000}
    facts = read_facts(json.dumps(body).encode(), "openai")
    estimate = estimate_call(facts, ModelContextRegistry(), "/v1/responses")
    assert estimate.is_background == is_background
    assert estimate.output == 10_000
