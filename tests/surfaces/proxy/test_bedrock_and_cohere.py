"""Bedrock's Converse and Cohere's chat: requests are fitted and recorded, responses unchanged."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import botocore.session  # type: ignore[import-untyped]
import pytest
from aiohttp import web
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

import holdfast
from holdfast.settings import UpstreamEntry
from holdfast.surfaces.proxy.request_preparer import SIGNED
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import AWS_SECRET, KEY
from tests.surfaces.proxy.harness import (
    PASSING,
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import REF, call, says, text
from tests.surfaces.proxy.upstream import Fault, Turn, Upstream, UpstreamTurn
from tests.wire.responses.passing_streams import exception

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{CLAUDE}"
MODELS = {"converse": CLAUDE, "cohere": "command-a-03-2025"}
HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
SAID = says(text("Hel", "lo."), call("read_log", {"path": "b.log"}, "call_9"))
OUR_KEY = {"bedrock": UpstreamEntry(key=KEY)}
RESULTS = [log(40, n) for n in range(9)]


@contextmanager
def proxied(*turns: Turn, **settings: Any) -> Iterator[tuple[Running, Upstream]]:
    with Upstream(*turns) as upstream, running_proxy(settings, upstream.url) as proxy:
        yield proxy, upstream


def body_of(dialect: str, *results: str, stream: bool = False) -> bytes:
    return request_in(dialect, chat(*results) | {"model": MODELS[dialect]}, stream=stream)


def sent(proxy: Running, dialect: str, body: bytes, *, stream: bool = False, **more: str) -> Any:
    path = path_of(dialect, stream=stream, model=MODELS[dialect])
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    return ask(proxy.url + path, body, HEADERS | headers)


def rebuilt(proxy: Running, answered: Answered) -> bytes:
    session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
    return proxy.do(session.rebuild(len(turns_of(proxy, answered))))


@pytest.mark.parametrize("dialect", PASSING)
def test_an_answer_is_the_vendors_own_and_its_turn_has_the_reported_usage(dialect: str) -> None:
    with proxied(SAID) as (proxy, upstream):
        body = body_of(dialect, "short")
        answered = sent(proxy, dialect, body)
        assert answered.status == 200, answered.body
        assert upstream.requests[0].body == body
        assert upstream.requests[0].model == MODELS[dialect]
        [turn] = turns_of(proxy, answered)
        assert turn.usage.input == upstream.ledger.bill(upstream.requests[0])
        assert turn.usage.output > 0
        assert turn.usage.tool_calls == 1
        assert turn.edits == ()
        assert rebuilt(proxy, answered) == body


@pytest.mark.parametrize("dialect", PASSING)
def test_a_stream_passes_byte_for_byte_and_its_turn_is_written_down(dialect: str) -> None:
    wire: list[bytes] = []

    @Fault
    async def bytes_alone(spoken: UpstreamTurn) -> web.StreamResponse:
        wire.append(b"".join(spoken.events(spoken.truthful(SAID))))
        response = await spoken.stream()
        for byte in wire[0]:
            await response.write(bytes([byte]))
        await response.write_eof()
        return response

    with proxied(bytes_alone) as (proxy, upstream):
        body = body_of(dialect, "short", stream=True)
        answered = sent(proxy, dialect, body, stream=True)
        assert answered.body == wire[0]
        [turn] = turns_of(proxy, answered)
        assert turn.status == 200
        assert turn.usage.input == upstream.ledger.bill(upstream.requests[0])
        assert turn.usage.output > 0
        assert rebuilt(proxy, answered) == body


@pytest.mark.parametrize("dialect", PASSING)
def test_what_has_come_of_a_stream_is_given_before_the_rest_comes(dialect: str) -> None:
    with proxied(faults.stall_midway) as (proxy, upstream):
        client = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=20)
        path = path_of(dialect, stream=True, model=MODELS[dialect])
        client.request("POST", path, body_of(dialect, "short", stream=True), HEADERS)
        with closing(client), client.getresponse() as response:
            seen = b""
            while b"Before " not in seen:  # though the upstream is silent since
                piece = response.read1()
                assert piece
                seen += piece
        assert upstream.left.acquire(timeout=20)


@pytest.mark.parametrize("dialect", PASSING)
def test_a_stream_that_ends_too_early_is_written_down_as_failed(dialect: str) -> None:
    with proxied(faults.cut_between_events) as (proxy, _):
        answered = sent(proxy, dialect, body_of(dialect, "short", stream=True), stream=True)
        assert [turn.status for turn in turns_of(proxy, answered)] == [502]


def test_an_exception_among_the_frames_passes_and_is_written_down() -> None:
    @Fault
    async def throttled(spoken: UpstreamTurn) -> web.StreamResponse:
        response = await spoken.stream()
        await response.write(exception("throttlingException", "a bad day"))
        await response.write_eof()
        return response

    with proxied(throttled) as (proxy, _):
        answered = sent(proxy, "converse", body_of("converse", "short"), stream=True)
        assert answered.body == exception("throttlingException", "a bad day")
        assert [turn.status for turn in turns_of(proxy, answered)] == [502]


# --- what is made to fit, and what is never done ---------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", PASSING)
def test_over_the_limit_it_is_folded_fits_and_can_be_rebuilt(dialect: str, stream: bool) -> None:
    with proxied(SAID) as (proxy, upstream):
        body = body_of(dialect, *RESULTS, stream=stream)
        answered = sent(proxy, dialect, body, stream=stream, x_holdfast_budget="3000")
        assert answered.status == 200, answered.body
        assert not upstream.refused
        [got] = upstream.requests
        assert got.least <= 3_000
        assert holdfast.count(got.body, dialect=dialect, model=got.model).tokens <= 3_000
        assert int(answered.headers["x-holdfast-tokens"]) <= 3_000
        [turn] = turns_of(proxy, answered)
        assert {edit.action for edit in turn.edits} <= {"fold", "shorten", "drop"}
        engine = proxy.service.engine
        for edit in turn.edits:
            stored = proxy.do(engine.store.get(engine.scope, edit.ref_id))
            assert stored is not None
            assert json.loads(stored.data) == json.loads(body)["messages"][edit.start : edit.stop]
        assert rebuilt(proxy, answered) == body


@pytest.mark.parametrize("dialect", PASSING)
def test_nothing_is_offered_or_hidden_that_nobody_would_answer(dialect: str) -> None:
    """Every setting that would cite, offer, set aside, assemble or remember is on."""
    settings = {
        "cite_policy": "always",
        "lazy_tool_tokens": 1,
        "mode": "assemble",
        "enable_answer_cache": True,
        "answer_rules": {"*": "exact"},
    }
    with proxied(SAID, SAID, **settings) as (proxy, upstream):
        body = body_of(dialect, log(400))
        for _ in range(2):
            answered = sent(proxy, dialect, body, x_holdfast_offer_expand="always")
            assert answered.status == 200, answered.body
        assert [got.body for got in upstream.requests] == [body, body]
        assert not REF.search(upstream.requests[0].texts)


def test_what_cannot_fit_is_refused_in_the_vendors_words() -> None:
    with proxied() as (proxy, _):
        told = sent(proxy, "converse", body_of("converse", log(400)), x_holdfast_budget="20").json
        assert told["__type"] == "ValidationException"
        assert told["message"].startswith("Input is too long for requested model")
        told = sent(proxy, "cohere", body_of("cohere", log(400)), x_holdfast_budget="20").json
        assert told["message"].startswith("too many tokens")


@pytest.mark.parametrize("dialect", PASSING)
def test_the_vendors_errors_come_as_they_are(dialect: str) -> None:
    with proxied(faults.status(429)) as (proxy, _):
        answered = sent(proxy, dialect, body_of(dialect, "short"))
        assert (answered.status, answered.json) == (429, {"message": "a bad day"})
        assert [turn.status for turn in turns_of(proxy, answered)] == [429]


@pytest.mark.parametrize("dialect", PASSING)
def test_without_an_upstream_there_is_no_answer(dialect: str) -> None:
    with running_proxy({"serve_offline": True}) as proxy:
        answered = sent(proxy, dialect, body_of(dialect, "short"))
        assert answered.status == 404
        assert "no upstream is set" in answered.json["message"]
        assert "--offline" not in answered.json["message"]


@pytest.mark.parametrize("dialect", PASSING)
def test_clients_with_other_keys_are_other_tenants(dialect: str) -> None:
    with proxied(SAID, SAID, tenant_by="key") as (proxy, _):
        for key in (f"{KEY}-ann", f"{KEY}-ben"):
            answered = sent(proxy, dialect, body_of(dialect, "x"), authorization=f"Bearer {key}")
            assert answered.status == 200, answered.body
        proxy.settled()
        assert len(proxy.do(proxy.service.tenants.all())) == 2


# --- routing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", PASSING)
def test_aliases_and_fallbacks_work_within_the_family(dialect: str) -> None:
    speaks: Any = "bedrock" if dialect == "converse" else "cohere"
    with Upstream(faults.status(503)) as busy, Upstream(SAID) as other, Upstream() as foreign:
        settings = {
            "model_aliases": {MODELS[dialect]: "amazon.nova-pro-v1:0"},
            "upstreams": {
                "foreign": UpstreamEntry(foreign.url, "anthropic", key=KEY),
                "first": UpstreamEntry(busy.url, speaks, key=KEY),
                "second": UpstreamEntry(other.url, speaks, key=KEY),
            },
        }
        with running_proxy(settings) as proxy:
            body = body_of(dialect, "short")
            answered = sent(proxy, dialect, body)
            assert answered.status == 200, answered.body
            assert answered.headers["x-holdfast-fell-back"] == "first 503"
            assert other.requests[0].model == "amazon.nova-pro-v1:0"
            assert not foreign.requests  # there are no answers that could be translated
            [turn] = turns_of(proxy, answered)
            assert [edit.action for edit in turn.edits] == ["route"]
            assert rebuilt(proxy, answered) == body


@pytest.mark.parametrize("model", [CLAUDE, ARN, f"{CLAUDE} ü"])
def test_a_model_in_a_path_goes_out_as_its_client_wrote_it(model: str) -> None:
    with proxied(SAID) as (proxy, upstream):
        path = f"/model/{quote(model, safe='')}/converse"
        answered = ask(proxy.url + path, body_of("converse", "short"), HEADERS)
        assert answered.status == 200, answered.body
        assert upstream.requests[0].raw_path == path
        assert turns_of(proxy, answered)[0].model == model


def test_other_paths_of_both_vendors_pass_through() -> None:
    with proxied() as (proxy, upstream):
        for path in (f"/model/{quote(CLAUDE)}/invoke", "/v2/embed"):
            answered = ask(proxy.url + path, b"{}", HEADERS)
            assert answered.json["path"] == upstream.requests[-1].path
            assert upstream.requests[-1].raw_path == path


# --- AWS' own client -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aws() -> Any:
    session = botocore.session.Session()
    session.set_credentials("AKIDEXAMPLE", AWS_SECRET, "session-token")
    return session


@contextmanager
def client_of(aws: Any, proxy: Running, **config: Any) -> Iterator[Any]:
    options = Config(retries={"total_max_attempts": 1}, **config)
    client = aws.create_client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=proxy.url, config=options
    )
    try:
        yield client
    finally:
        client.close()


def asks(client: Any, *results: str) -> dict[str, Any]:
    body = json.loads(body_of("converse", *results))
    answer: dict[str, Any] = client.converse(modelId=ARN, **body)
    return answer


def test_a_signed_request_goes_out_as_it_came_and_the_record_says_so(aws: Any) -> None:
    settings = {"model_aliases": {ARN: "another"}, "request_limit": 3_000, "tenant_by": "key"}
    with proxied(SAID, SAID, **settings) as (proxy, upstream):
        with client_of(aws, proxy) as client:
            answer = asks(client, *RESULTS)
            asks(client, *RESULTS, "more")
        assert not upstream.refused  # the signature holds: path, host and body are the client's
        assert upstream.requests[0].model == ARN
        assert answer["output"]["message"]["content"][0]["text"] == "Hello."
        told = answer["ResponseMetadata"]["HTTPHeaders"]
        assert told["x-holdfast-warning"] == SIGNED
        assert told["x-holdfast-saved"] == "0"
        proxy.settled()
        [tenant] = proxy.do(proxy.service.tenants.all())  # though each signature is another
        assert tenant.startswith("aws-")
        engine = proxy.do(proxy.service.tenants.engine(tenant))
        session = engine.session(told["x-holdfast-session"])
        turns = proxy.do(engine.store.turns(session.scope))
        assert [(turn.edits, turn.warnings) for turn in turns] == [((), (SIGNED,))] * 2
        assert turns[0].usage.input == upstream.ledger.bill(upstream.requests[0])
        assert proxy.do(session.rebuild(1)) == upstream.requests[0].body


def test_a_key_of_the_settings_stands_in_for_a_signature(aws: Any) -> None:
    with proxied(SAID, upstreams=OUR_KEY, request_limit=3_000) as (proxy, upstream):
        with client_of(aws, proxy) as client:
            asks(client, *RESULTS)
        [got] = upstream.requests
        assert got.header("authorization") == f"Bearer {KEY}"
        assert "session-token" not in str(got.headers)
        assert got.least <= 3_000


def test_a_signature_opens_no_pages_of_whom_it_names() -> None:
    """The id of a key is no secret, and only AWS can check its signature."""
    with proxied(SAID, tenant_by="key", serve_tokens={"ann": "t-ann"}) as (proxy, _):
        forged = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261117/us-east-1/bedrock/aws4_request"
        assert ask(f"{proxy.url}/sessions", None, {"authorization": forged}).status == 401


def test_streams_and_errors_reach_the_client(aws: Any) -> None:
    with proxied(SAID, faults.status(429), upstreams=OUR_KEY) as (proxy, upstream):
        with client_of(aws, proxy) as client:
            body = json.loads(body_of("converse", "short"))
            events = list(client.converse_stream(modelId=CLAUDE, **body)["stream"])
            with pytest.raises(ClientError) as refused:
                asks(client, "short")
            bad = {"modelId": CLAUDE, "messages": [{"role": "user", "content": []}]}
            with pytest.raises(ClientError) as ours:
                client.converse(**bad | {"system": [{"text": "x" * 2_000_000}]})
        assert events[-1]["metadata"]["usage"]["inputTokens"] == upstream.ledger.bill(
            upstream.requests[0]
        )
        assert refused.value.response["Error"] == {
            "Code": "ThrottlingException",
            "Message": "a bad day",
        }
        assert ours.value.response["Error"]["Code"] == "ValidationException"
