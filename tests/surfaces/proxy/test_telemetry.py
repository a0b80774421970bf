"""The proxy's telemetry is true, and contains no text of conversations."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from holdfast.errors import SettingsError
from holdfast.jobs import Attempt
from holdfast.settings import Settings
from holdfast.store import Scope, Turn
from holdfast.store.queue import NewJob
from holdfast.store.records import OFFLINE
from holdfast.surfaces.proxy import spans
from holdfast.surfaces.proxy.logs import Fields, JsonFormatter
from holdfast.surfaces.proxy.metrics import MOST_MODELS
from holdfast.surfaces.proxy.report import MOST_SESSIONS
from holdfast.surfaces.proxy.seen import CLIENT_LEFT, RequestSeen, session_id
from holdfast.upstream.network import UpstreamReply
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.faults import SAID
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import DIALECTS, Running, ask, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import REF, says, text
from tests.surfaces.proxy.spoken import call as tool_call
from tests.surfaces.proxy.test_server import Process
from tests.surfaces.proxy.upstream import Fault, Upstream, UpstreamTurn
from tests.wire.responses.streams import Script

CHAT = "/v1/chat/completions"
BEARS = {"authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def proxy() -> Iterator[Running]:
    with running_proxy() as running:
        yield running


def samples(proxy: Running, name: str) -> dict[tuple[str, ...], float]:
    """A metric's values by its labels, in the order of the labels' names."""
    answered = ask(proxy.url + "/metrics")
    assert answered.headers["content-type"].startswith("text/plain; version=")
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answered.body.decode())
        for sample in family.samples
        if sample.name == f"holdfast_{name}"
    }


def total(proxy: Running, name: str) -> float:
    return sum(samples(proxy, name).values())


def turns_of(proxy: Running, session: str) -> list[Turn]:
    scope = Scope(session=session)
    return proxy.do(proxy.service.engine.store.turns(scope))


# --- counters ------------------------------------------------------------------------------------


def test_counters_are_the_sums_of_the_turns_in_the_store() -> None:
    with running_proxy() as proxy:
        for dialect in DIALECTS:
            for stream in (False, True):
                body = chat(log(300), "short", question=f"Is {dialect} {stream} step 77 well?")
                answered = ask(
                    proxy.url + path_of(dialect, stream=stream),
                    request_in(dialect, body, stream=stream),
                    {"x-holdfast-session": dialect},
                )
                assert answered.status == 200
        proxy.settled()
        turns = [turn for dialect in DIALECTS for turn in turns_of(proxy, dialect)]
        assert len(turns) == 8
        used = [turn.usage for turn in turns]
        for name, field in (
            ("untouched_tokens_total", "untouched"),
            ("sent_tokens_total", "predicted"),
            ("input_tokens_total", "input"),
            ("output_tokens_total", "output"),
            ("expansions_total", "expansions"),
            ("expansion_tokens_total", "expansion_tokens"),
        ):
            assert total(proxy, name) == sum(getattr(one, field) for one in used), name
        saved = sum(one.untouched - one.input for one in used)
        assert saved > 0
        assert sum(one.expansion_tokens for one in used) > 0
        assert total(proxy, "saved_tokens") == saved
        dollars = sum(one.saved_cost or 0.0 for one in used)
        assert total(proxy, "saved_dollars") == pytest.approx(dollars)
        assert total(proxy, "cost_dollars_total") == pytest.approx(sum(u.cost or 0 for u in used))
        edits = samples(proxy, "edits_total")
        assert edits[("cite",)] == sum(e.action == "cite" for turn in turns for e in turn.edits)
        assert total(proxy, "warnings_total") == sum(len(turn.warnings) for turn in turns)
        assert total(proxy, "prefix_share_count") == sum(turn.number > 1 for turn in turns)
        requests = samples(proxy, "requests_total")
        assert sum(requests.values()) == 8
        assert requests[("anthropic", "anthropic", "gpt-4o", "200")] == 2
        for timed in ("added_seconds", "request_seconds"):
            assert total(proxy, f"{timed}_count") == 8
        assert 0 < total(proxy, "added_seconds_sum") <= total(proxy, "request_seconds_sum")
        assert total(proxy, "open_requests") == 0


def test_what_fails_is_counted_and_told_too(
    proxy: Running, caplog: pytest.LogCaptureFixture
) -> None:
    before = samples(proxy, "requests_total")
    with caplog.at_level(logging.INFO, "holdfast.proxy"):
        assert ask(proxy.url + CHAT, b"{").status == 400
        assert ask(proxy.url + "/v1/files").status == 404
        proxy.settled()
    after = samples(proxy, "requests_total")
    new = {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key)}
    assert new == {
        ("openai-chat", "openai", "unknown", "400"): 1,
        ("openai-chat", "openai", "unknown", "404"): 1,
    }
    bad, lost = (r.msg for r in caplog.records if isinstance(r.msg, Fields))
    assert (bad["status"], bad["error"]) == (400, "BadJSONError")
    assert (lost["status"], lost["error"]) == (404, "NoUpstreamError")


@pytest.mark.filterwarnings("ignore::holdfast.tokens.UnknownModelWarning")
def test_models_have_at_most_as_many_labels_as_there_are_places() -> None:
    with running_proxy() as proxy:
        for n in range(MOST_MODELS + 5):
            body = chat("short", question="Hello?") | {"model": f"model-{n}"}
            ask(proxy.url + CHAT, body)
        proxy.settled()
        odd = chat("short") | {"model": 'my "secret" project'}
        ask(proxy.url + CHAT, odd)
        proxy.settled()
        counted = samples(proxy, "requests_total")
        models = {model for _, _, model, _ in counted}
        assert len(models) == MOST_MODELS + 1
        assert counted["openai-chat", "openai", "other", "200"] == 6
        assert b"secret" not in ask(proxy.url + "/metrics").body


def test_a_cache_that_the_vendor_reports_is_counted() -> None:
    async def cached(spoken: UpstreamTurn) -> web.StreamResponse:
        return await spoken.say(replace(spoken.truthful(SAID), cached=7))

    with Upstream(Fault(cached), SAID) as upstream, running_proxy(upstream=upstream.url) as proxy:
        for question in ("One?", "Two?"):
            assert ask(proxy.url + CHAT, chat(question=question), BEARS).status == 200
        proxy.settled()
        assert total(proxy, "cached_tokens_total") == 7
        assert total(proxy, "cache_hits_total") == 1


def test_an_open_stream_is_seen_while_it_is_open_and_told_when_its_client_left() -> None:
    async def stalls(spoken: UpstreamTurn) -> web.StreamResponse:
        response = await spoken.stream()
        await response.write(spoken.events(SAID)[0])
        await spoken.never()
        return response

    with Upstream(Fault(stalls)) as upstream, running_proxy(upstream=upstream.url) as proxy:
        parts = urlsplit(proxy.url)
        client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        body = chat(question="Hello?") | {"stream": True}
        client.request("POST", CHAT, json.dumps(body), BEARS)
        response = client.getresponse()
        assert response.read(1)
        assert total(proxy, "open_requests") == 1
        assert total(proxy, "open_streams") == 1
        response.close()
        client.close()
        assert upstream.left.acquire(timeout=30)
        while proxy.service.telemetry._open:
            proxy.settled()
        proxy.settled()
        assert total(proxy, "open_streams") == 0
        [((_, _, _, status), one)] = samples(proxy, "requests_total").items()
        assert (int(status), one) == (CLIENT_LEFT, 1)


def test_failures_of_the_store_are_counted_and_leave_a_request_answered(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / "holdfast.db"
    with running_proxy({"store_url": f"sqlite:///{file}"}) as proxy:
        assert ask(proxy.url + CHAT, chat(question="Well?")).status == 200
        proxy.settled()
        assert total(proxy, "store_failures_total") == 0
        other = sqlite3.connect(file)
        other.execute("DROP TABLE turns")
        other.close()
        with caplog.at_level(logging.INFO, "holdfast.proxy"):
            assert ask(proxy.url + CHAT, chat(question="And now?")).status == 200
            proxy.settled()
        assert total(proxy, "store_failures_total") == 1
        assert "store=failed" in caplog.text
        told = ask(proxy.url + "/stats")
        assert told.status == 503
        assert told.json["process"]["store_failures_total"] == 1


# --- /stats --------------------------------------------------------------------------------------


def test_stats_sum_the_store_by_model_session_and_day() -> None:
    with running_proxy() as proxy:
        names = [f"s{n}" for n in range(MOST_SESSIONS + 3)]
        for n, name in enumerate(names):
            body = chat(log(60) if n % 10 == 0 else "short", question=f"{name}?")
            body["model"] = ("gpt-4o", "gpt-4o-mini")[n % 2]
            ask(proxy.url + CHAT, body, {"x-holdfast-session": name})
            proxy.settled()
        found = ask(proxy.url + "/stats").json
        names_of_models = [row["name"] for row in found["by_model"]]
        assert names_of_models == ["gpt-4o (offline)", "gpt-4o-mini (offline)"]
        assert len(found["by_session"]) == MOST_SESSIONS
        assert {row["name"] for row in found["by_session"]} == set(names[3:])
        totals = found["totals"]
        for field in ("turns", "untouched", "predicted", "saved", "failed", "output"):
            for by in ("by_model", "by_day"):
                assert sum(row[field] for row in found[by]) == totals[field], (by, field)
        assert totals["turns"] == len(names)
        # The model opens each short log at once, and so reads its prompt twice: a loss.
        assert totals["saved"] == totals["untouched"] - totals["input"] < 0
        process = found["process"]
        assert process["added_seconds_count"] == len(names)
        sent = {one["model"]: one["value"] for one in process["sent_tokens_total"]}
        by_model = {r["name"].removesuffix(OFFLINE): r["predicted"] for r in found["by_model"]}
        assert sent == by_model


def test_both_pages_want_the_token() -> None:
    with running_proxy({"serve_token": "t0ken-of-the-proxy"}) as proxy:
        for path in ("/stats", "/metrics"):
            assert ask(proxy.url + path).status == 401
            with_token = {"x-holdfast-token": "t0ken-of-the-proxy"}
            assert ask(proxy.url + path, headers=with_token).status == 200


# --- times ---------------------------------------------------------------------------------------


def test_waiting_for_the_upstream_and_for_the_client_is_not_what_the_proxy_adds() -> None:
    waited = {"upstream": 0.0, "client": 0.0}

    async def wait(whom: str) -> None:
        start = time.perf_counter()
        await asyncio.sleep(0.01)
        waited[whom] += time.perf_counter() - start

    class Slow:
        status = 200
        headers: Mapping[str, str] = MappingProxyType({})

        async def chunks(self) -> AsyncGenerator[bytes]:
            for piece in (b"a", b"b"):
                await wait("upstream")
                yield piece

    @asynccontextmanager
    async def sending() -> AsyncIterator[UpstreamReply]:
        await wait("upstream")
        yield Slow()

    async def exchange() -> tuple[RequestSeen, bytes]:
        seen = RequestSeen("openai-chat")
        got = b""
        async with seen.timed(sending()) as reply:
            async for piece in reply.chunks():
                got += piece
                seen.sends({"more_body": True})
                with seen.waiting_for_client():
                    await wait("client")
        seen.ended()
        return seen, got

    seen, got = asyncio.run(exchange())
    assert got == b"ab"
    assert seen.streams
    assert seen.upstream >= waited["upstream"] > 0
    assert seen.client >= waited["client"] > 0
    assert seen.added == pytest.approx(seen.total - seen.upstream - seen.client)


# --- logs ----------------------------------------------------------------------------------------


def test_a_request_is_one_line_of_ids_and_counts(
    proxy: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "holdfast.proxy"):
        answered = ask(proxy.url + CHAT, chat(log(300), question="Is step 77 well?"))
        proxy.settled()
    [record] = caplog.records
    said = record.msg
    assert isinstance(said, Fields)
    [turn] = turns_of(proxy, answered.headers["x-holdfast-session"])
    assert said["session"] == answered.headers["x-holdfast-session"]
    assert (said["family"], said["model"], said["status"]) == ("openai", "gpt-4o", 200)
    assert said["predicted"] == int(answered.headers["x-holdfast-tokens"])
    assert said["saved"] == turn.usage.untouched - turn.usage.input
    assert said["edits"] == len(turn.edits) == 2
    assert said["expansions"] == turn.usage.expansions
    words = dict(word.split("=") for word in record.getMessage().split(" "))
    assert words == {name: str(value) for name, value in said.items()}


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text() | st.integers()))
def test_any_fields_are_one_line_of_text_and_one_of_json(fields: dict[str, Any]) -> None:
    record = logging.LogRecord("holdfast", 20, "", 0, Fields(fields), (), None)
    assert len(record.getMessage().splitlines()) <= 1
    written = JsonFormatter().format(record)
    assert len(written.splitlines()) == 1
    back = json.loads(written)
    assert {name: back[name] for name in fields if name not in ("time", "level")} == {
        name: value for name, value in fields.items() if name not in ("time", "level")
    }


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
def test_the_setting_makes_every_line_of_the_program_json(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text('log_format = "json"\n')
    process = Process(tmp_path, "--store", "memory:")
    assert ask(process.url + CHAT, chat(question="Hello?")).status == 200
    process.process.send_signal(signal.SIGTERM)
    code, said = process.end()
    assert code == 0
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines] == ["request", "stopped"]
    assert lines[0]["status"] == 200
    assert {"time", "level", "id", "session", "tokens", "ms"} < set(lines[0])
    assert "event=" not in said


# --- no content, anywhere ------------------------------------------------------------------------


class Everything(logging.Handler):
    """All messages of all loggers, in every form."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter().format(record)  # with its traceback, if it has one
        self.said += [text, JsonFormatter().format(record), repr(record.__dict__)]


@contextmanager
def overheard() -> Iterator[Everything]:
    """Collect the messages of all loggers, also of existing ones with their own level."""
    root = logging.getLogger()
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
    levels = [(one, one.level) for one in (root, *loggers)]
    handler = Everything()
    root.addHandler(handler)
    for one, _ in levels:
        one.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        for one, level in levels:
            one.setLevel(level)


def marked(body: dict[str, Any], mark: str) -> dict[str, Any]:
    """Return a request with a mark in every text, name and argument."""
    body["messages"].insert(0, {"role": "system", "content": f"Be {mark}sys."})
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            call["id"] = f"{mark}id"
            call["function"] = {"name": f"{mark}fn", "arguments": f'{{"a": "{mark}arg"}}'}
        if message["role"] == "tool":
            message["tool_call_id"] = f"{mark}id"
    body["tools"] = [
        {
            "type": "function",
            "function": {"name": f"{mark}fn", "parameters": {"type": "object"}},
        }
    ]
    return body


@pytest.mark.filterwarnings("ignore::holdfast.tokens.UnknownModelWarning")
@rules(max_examples=30, deadline=None)
@given(
    dialect=st.sampled_from(DIALECTS),
    stream=st.booleans(),
    number=st.integers(10**8, 10**9),
    spoiled=st.sampled_from(("", "body", "path", "switch", "model", "bypass")),
)
def test_nothing_of_a_request_is_logged_or_counted(
    proxy: Running, dialect: str, stream: bool, number: int, spoiled: str
) -> None:
    mark = f"zq{number}zq"
    long = f"{log(200)}\n{mark}line\n{log(100, 1)}"
    body = marked(chat(long, question=f"What is {mark}question?"), mark)
    if spoiled == "model":
        body["model"] = f"{mark} model of a secret project"
    made = request_in(dialect, body, stream=stream)
    path = path_of(dialect, stream=stream)
    headers = {
        "authorization": f"Bearer {mark}key",
        "x-api-key": f"{mark}key",
        "x-goog-api-key": f"{mark}key",
        "x-holdfast-session": f"{mark} session in {dialect}",
        "x-other": f"{mark}other",
        "traceparent": f"{mark}parent",
    }
    match spoiled:
        case "body":
            made = made.replace(b'"', b"", 3)
        case "path":
            path = f"/v1/files/{mark}path?key={mark}"
        case "switch":
            headers["x-holdfast-budget"] = f"{mark}budget"
        case "bypass":
            headers["x-holdfast-bypass"] = "on"
    with overheard() as everything:
        answered = ask(proxy.url + path, made, headers)
        proxy.settled()
        metrics = ask(proxy.url + "/metrics").body.decode()
    assert answered.status == {"body": 400, "switch": 400, "path": 404}.get(spoiled, 200)
    told = "\n".join(everything.said)
    assert "event=request" in told
    assert mark not in told
    assert mark not in metrics


def test_a_session_that_the_client_named_is_logged_by_its_hash() -> None:
    ours = "0123456789abcdef" * 2
    assert session_id(ours) == ours
    assert "Ann" not in session_id("Ann's divorce")
    assert session_id("Ann's divorce") != session_id("Ann's wedding")


# --- spans ---------------------------------------------------------------------------------------


def test_spans_follow_the_conventions_and_hold_no_content(proxy: Running) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415
        InMemorySpanExporter,
    )
    from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415

    exporter = InMemorySpanExporter()
    proxy.service.telemetry.tracing = written = spans.RequestTracer(exporter)
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    try:
        answered = ask(
            proxy.url + path_of("gemini"),
            request_in("gemini", chat(log(300), question="Is step zq77zq well?")),
            {"traceparent": f"00-{trace}-{parent}-01", "x-holdfast-session": "zq named zq"},
        )
        assert answered.status == 200
        proxy.settled()
        assert ask(proxy.url + CHAT, b"{zq").status == 400
        proxy.settled()
    finally:
        proxy.service.telemetry.tracing = None
        written.close()
    fine, failed = exporter.get_finished_spans()
    [turn] = turns_of(proxy, "zq named zq")
    about = dict(fine.attributes or {})
    assert fine.name == "generate_content gemini-2.5-flash"
    assert fine.kind is SpanKind.CLIENT
    assert fine.parent is not None
    assert f"{fine.parent.trace_id:032x}" == trace
    assert f"{fine.parent.span_id:016x}" == parent
    assert about["gen_ai.operation.name"] == "generate_content"
    assert about["gen_ai.provider.name"] == "gcp.gemini"
    assert about["gen_ai.request.model"] == "gemini-2.5-flash"
    assert about["gen_ai.usage.input_tokens"] == turn.usage.input
    assert about["gen_ai.usage.output_tokens"] == turn.usage.output
    assert about["holdfast.untouched_tokens"] == turn.usage.untouched
    assert about["gen_ai.conversation.id"] == session_id("zq named zq")
    assert (fine.end_time or 0) >= (fine.start_time or 0) > 0
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "400"
    assert "zq" not in fine.to_json() + failed.to_json()


def test_spans_are_off_unless_configured_and_cost_no_import() -> None:
    assert spans.configured(Settings()) is None
    program = (
        "import sys, holdfast.surfaces.proxy.server\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_spans_without_their_extra_or_address_are_an_error_with_a_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, spans._EXPORTER, None)  # as if it were not installed
    with pytest.raises(SettingsError) as raised:
        spans.configured(Settings(otel_endpoint="http://localhost:4318"))
    assert "holdfast[otel]" in raised.value.fix
    with pytest.raises(SettingsError, match="no HTTP address"):
        spans.configured(Settings(otel_endpoint="localhost:4318"))


def test_calls_that_open_nothing_are_counted_by_reason() -> None:
    def turn(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref
        asked = ({"ref": ref[0], "lines": "1-5"}, {"ref": f"ref:log:{'0' * 16}"})
        return says(*(tool_call("expand_ref", given, f"c{n}") for n, given in enumerate(asked)))

    last = says(text("Read."))
    with Upstream(turn, turn, last) as upstream, running_proxy({}, upstream.url) as proxy:
        ask(proxy.url + CHAT, chat(log(600)), BEARS)
        refused = samples(proxy, "refused_calls_total")
    assert refused == {("repeated",): 1, ("nothing_found",): 2}


def test_metrics_tell_of_the_queue_and_of_the_attempts_made_here() -> None:
    with running_proxy() as proxy:
        engine = proxy.service.engine
        assert engine.parts.jobs is not None
        engine.parts.jobs.told(Attempt(kind="x", state="done", seconds=0.2, cost=40))
        engine.parts.jobs.told(Attempt(kind="x", state="failed", seconds=0.2, error="it timed out"))
        queued = [NewJob(kind="y", key="a"), NewJob(kind="y", key="b", delay_seconds=500.0)]
        queueing = engine.store.jobs.enqueue(Scope(), queued)
        assert asyncio.run_coroutine_threadsafe(queueing, proxy.loop).result(30) == 2
        told = ask(f"{proxy.url}/metrics").body.decode()
    assert 'holdfast_jobs_total{kind="x",state="done"} 1.0' in told
    assert 'holdfast_jobs_total{kind="x",state="failed"} 1.0' in told
    assert 'holdfast_job_cost_tokens_total{kind="x"} 40.0' in told
    assert 'holdfast_jobs_depth{kind="y",state="queued"} 2.0' in told
    assert 'holdfast_jobs_age_seconds{kind="y",state="queued"}' in told
    assert "holdfast_jobs_cost_today_tokens 0.0" in told
