"""The proxy's reports and records of a request are true, for any request."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import holdfast
from holdfast.surfaces.proxy import app
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Answered,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
    usage_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_opening import opening
from tests.surfaces.proxy.upstream import PATIENCE, Fault, Upstream, UpstreamTurn

LINES = 300
SAID = says(text("Hello."))


async def _lingers(spoken: UpstreamTurn) -> web.StreamResponse:
    response = await spoken.stream()
    for event in spoken.events(spoken.truthful(says(text("It went well.")))):
        await response.write(event)
    await spoken.never()
    return response


LINGERS = Fault(_lingers)
"""A complete response on a connection that stays open."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_read_only_request_is_written_down_as_it_was_sent(dialect: str, stream: bool) -> None:
    body = request_in(dialect, chat(*(log(60, n) for n in range(9))), stream=stream)
    headers = {**KEYS, "x-holdfast-read-only": "on", "x-holdfast-budget": "3500"}
    with Upstream(SAID) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, body, stream=stream, headers=headers)
        [turn] = turns_of(proxy, answered)
        [got] = upstream.requests
        assert got.body == body
        assert int(answered.headers["x-holdfast-saved"]) > 1_000
        if dialect == "openai-chat":  # whose clients ask for usage in a stream
            assert usage_of(dialect, answered, stream=stream)[0] == got.tokens
        assert turn.edits == ()
        assert turn.usage.input == got.tokens
        # The upstream counts on its own; Gemini's digits are the widest gap.
        assert got.least <= turn.usage.predicted
        assert abs(turn.usage.predicted - got.tokens) < 0.3 * got.tokens
        assert (turn.standings, turn.patches) == ((), ())


def test_the_header_claims_no_saving_for_a_request_that_exceeds_the_window() -> None:
    """Regression: it claimed two million tokens, and the bill none."""
    body = request_in("openai-chat", chat(log(12_000)))
    assert holdfast.count(body).tokens > 128_000
    with Upstream(SAID) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, "openai-chat", body)
        [turn] = turns_of(proxy, answered)
    assert turn.usage.overflows
    assert turn.usage.saved == 0
    assert answered.headers["x-holdfast-saved"] == "0"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_read_only_request_goes_out_though_it_would_not_fit(dialect: str) -> None:
    body = request_in(dialect, chat(question=log(LINES)))
    headers = {**KEYS, "x-holdfast-read-only": "on", "x-holdfast-budget": "100"}
    with Upstream(SAID) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, body, headers=headers)
        assert text_of(dialect, answered) == "Hello."
        assert "does not fit" in answered.headers["x-holdfast-warning"]
        assert upstream.requests[0].body == body


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_conversation_with_hidden_calls_goes_on_after_a_restart(
    dialect: str, tmp_path: Path
) -> None:
    """The next proxy restores the model's openings: hidden calls are in the store."""
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    asked: Any = chat(log(LINES), question="First?")
    names = []
    script = (opening(1, lines="1-9"), says(text("It went well.")), SAID, SAID)
    with Upstream(*script) as upstream:
        for n in range(3):
            with running_proxy(settings, upstream.url) as proxy:
                body = request_in(dialect, asked)
                answered = ask_model(proxy, dialect, body)
                assert answered.status == 200, answered.body
                names.append(answered.headers["x-holdfast-session"])
                said = text_of(dialect, answered)
                asked["messages"] += [
                    {"role": "assistant", "content": said},
                    {"role": "user", "content": f"And {n}?"},
                ]
        assert upstream.refused == []
    assert len(set(names)) == 1
    shown = ["lines 1-9 of" in sent.texts for sent in upstream.requests]
    assert shown == [False, True, True, True]


def test_hidden_calls_do_not_hide_a_conversation_from_the_next_proxy(tmp_path: Path) -> None:
    """The session is identified by the client's requests, not by restored messages."""
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    asked: Any = chat(log(LINES), question="First?")
    script = (opening(1, lines="1-9"), says(text("It went well.")), SAID, SAID)
    names = []
    with Upstream(*script) as upstream:
        for proxies in (2, 1):
            with running_proxy(settings, upstream.url) as proxy:
                for _ in range(proxies):
                    answered = ask(proxy.url + path_of("openai-chat"), asked, KEYS)
                    names.append(answered.headers["x-holdfast-session"])
                    said = answered.json["choices"][0]["message"]["content"]
                    asked["messages"] += [
                        {"role": "assistant", "content": said},
                        {"role": "user", "content": "And then?"},
                    ]
        assert b"expand_ref" in json.dumps(upstream.requests[2].value["messages"]).encode()
        assert upstream.refused == []
    assert len(set(names)) == 1


def test_what_the_offline_model_used_is_written_down() -> None:
    with running_proxy() as proxy:
        answered = ask(proxy.url + path_of("openai-chat"), chat("short"))
        [turn] = turns_of(proxy, answered)
        used = usage_of("openai-chat", answered)
        assert (turn.usage.input, turn.usage.output) == used
        assert used[1] > 0


def test_an_upstream_cannot_speak_in_the_proxys_name() -> None:
    theirs = faults.status(429, **{"x-holdfast-session": "theirs"})
    with Upstream(theirs) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask(proxy.url + path_of("openai-chat"), chat("short"), KEYS)
        assert answered.headers["x-holdfast-session"] != "theirs"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_before_a_failure_were_billed_too(dialect: str) -> None:
    script = (opening(1, lines="1-9"), faults.status(429))
    with Upstream(*script) as upstream, running_proxy({}, upstream.url) as proxy:
        body = request_in(dialect, chat(log(LINES)))
        answered = ask_model(proxy, dialect, body)
        assert answered.status == 429
        [turn] = turns_of(proxy, answered)
        assert turn.status == 429
        assert turn.usage.output > 0
        assert turn.usage.expansions == 1


ENDS = {
    "openai-chat": b"[DONE]",
    "openai-responses": b"response.completed",
    "anthropic": b"message_stop",
}


@pytest.mark.parametrize("dialect", ENDS)
def test_a_stream_has_ended_with_its_last_word(dialect: str) -> None:
    """An upstream that keeps the connection open after its response delays no client."""
    with Upstream(LINGERS) as upstream, running_proxy({}, upstream.url) as proxy:
        body = request_in(dialect, chat("short"), stream=True)
        answered = ask_model(proxy, dialect, body, stream=True)
        assert text_of(dialect, answered, stream=True) == "It went well."
        assert b'"error"' not in answered.body.replace(b'"error": null', b"")
        assert upstream.left.acquire(timeout=PATIENCE)
        [turn] = turns_of(proxy, answered)
        assert turn.status == 200


@pytest.mark.parametrize("dialect", ENDS)
def test_a_client_that_leaves_with_the_end_has_had_its_answer(dialect: str) -> None:
    """Many clients do that: the model's openings are recorded, and the client does not count as
    gone.
    """
    script = (opening(1, lines="1-9"), LINGERS)
    with Upstream(*script) as upstream, running_proxy({}, upstream.url) as proxy:
        body = request_in(dialect, chat(log(LINES)), stream=True)
        connection = HTTPConnection(proxy.url.removeprefix("http://"), timeout=PATIENCE)
        connection.request("POST", path_of(dialect, stream=True), body, KEYS)
        response = connection.getresponse()
        said = b""
        while ENDS[dialect] not in said:
            said += response.read1()
        connection.close()
        response.close()
        assert upstream.left.acquire(timeout=PATIENCE)
        answered = Answered(200, {k.lower(): v for k, v in response.getheaders()}, said)
        [turn] = turns_of(proxy, answered)
        assert turn.status == 200
        session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
        [kept] = session.hidden
        assert len(kept.hops) == 2


@pytest.mark.parametrize(
    ("dialect", "path", "name"),
    [
        ("anthropic", "/v1/messages/count_tokens", "input_tokens"),
        ("gemini", "/v1beta/models/gemini-2.5-flash:countTokens", "totalTokens"),
    ],
)
def test_what_cannot_fit_is_counted_as_it_is(dialect: str, path: str, name: str) -> None:
    body = request_in(dialect, chat(question=log(LINES)))
    with running_proxy({"request_limit": 100}) as proxy:
        answered = ask(proxy.url + path, body)
        assert answered.status == 200, answered.body
        assert answered.json[name] > LINES


async def _talks_on(spoken: UpstreamTurn) -> web.StreamResponse:
    response = await spoken.stream()
    event = next(e for e in spoken.events(says(text("word " * 9_000))) if b"word" in e)
    while True:
        await response.write(event)


@pytest.mark.parametrize("bypass", ["on", "off"])
def test_a_reader_that_stops_does_not_hold_its_upstream(
    bypass: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "TAKING_SECONDS", 0.3)
    with Upstream(Fault(_talks_on)) as upstream, running_proxy({}, upstream.url) as proxy:
        body = request_in("openai-chat", chat("short"), stream=True)
        connection = HTTPConnection(proxy.url.removeprefix("http://"), timeout=PATIENCE)
        headers = {**KEYS, "x-holdfast-bypass": bypass}
        connection.request("POST", path_of("openai-chat"), body, headers)
        response = connection.getresponse()
        assert upstream.left.acquire(timeout=PATIENCE)
        assert proxy.service.http.open_connections == 0
        response.close()
        connection.close()


@pytest.mark.parametrize(
    ("dialect", "extra"),
    [
        ("openai-responses", {"previous_response_id": "resp_1"}),
        ("gemini", {"cachedContent": "cachedContents/1"}),
        ("openai-chat", {}),
    ],
)
def test_what_the_provider_keeps_and_bills_teaches_nothing(
    dialect: str, extra: dict[str, str]
) -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.always = faults.usage_of(5_000)
        upstream.ledger.stored["resp_1"] = [{"role": "user", "content": "Hello."}]
        before = proxy.service.engine.calibration.dump()
        body = json.dumps({**json.loads(request_in(dialect, chat("short"))), **extra}).encode()
        answered = ask_model(proxy, dialect, body)
        [turn] = turns_of(proxy, answered)
        assert turn.usage.input == 5_000
        assert (proxy.service.engine.calibration.dump() == before) == bool(extra)
