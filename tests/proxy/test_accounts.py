"""What the proxy says and writes down of a request is true, whatever was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.store import Turn
from tests.fitting.test_citing import chat, log
from tests.proxy import faults
from tests.proxy.harness import (
    DIALECTS,
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
    text_of,
    usage_of,
)
from tests.proxy.spoken import says, text
from tests.proxy.test_opening import HEADERS, opening
from tests.proxy.upstream import Upstream

LINES = 300
SAID = says(text("Hello."))


def turns_of(proxy: Running, answered: Answered) -> list[Turn]:
    proxy.settled()
    session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
    return proxy.do(proxy.service.engine.store.turns(session.scope))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_read_only_request_is_written_down_as_it_was_sent(dialect: str, stream: bool) -> None:
    body = request_in(dialect, chat(*(log(60, n) for n in range(9))), stream=stream)
    headers = {**HEADERS, "x-holdfast-read-only": "on", "x-holdfast-budget": "3500"}
    with Upstream(SAID) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask(proxy.url + path_of(dialect, stream=stream), body, headers)
        [turn] = turns_of(proxy, answered)
        [got] = upstream.requests
        assert got.body == body
        assert int(answered.headers["x-holdfast-saved"]) > 1_000
        if dialect == "openai-chat":  # whose clients ask for usage in a stream
            assert usage_of(dialect, answered, stream=stream)[0] == got.tokens
        assert turn.edits == ()
        assert turn.usage.predicted == turn.usage.untouched == turn.usage.input == got.tokens
        assert turn.client == turn.sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_read_only_request_goes_out_though_it_would_not_fit(dialect: str) -> None:
    body = request_in(dialect, chat(question=log(LINES)))
    headers = {**HEADERS, "x-holdfast-read-only": "on", "x-holdfast-budget": "100"}
    with Upstream(SAID) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask(proxy.url + path_of(dialect), body, headers)
        assert text_of(dialect, answered) == "Hello."
        assert "does not fit" in answered.headers["x-holdfast-warning"]
        assert upstream.requests[0].body == body


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_conversation_with_hidden_calls_goes_on_after_a_restart(
    dialect: str, tmp_path: Path
) -> None:
    """What was opened is known to the proxy that opened it only; the rest goes on."""
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    asked: Any = chat(log(LINES), question="First?")
    names = []
    script = (opening(1, lines="1-9"), says(text("It went well.")), SAID, SAID)
    with Upstream(*script) as upstream:
        for n in range(3):
            with running_proxy(settings, upstream.url) as proxy:
                body = request_in(dialect, asked)
                answered = ask(proxy.url + path_of(dialect), body, HEADERS)
                assert answered.status == 200, answered.body
                names.append(answered.headers["x-holdfast-session"])
                said = text_of(dialect, answered)
                asked["messages"] += [
                    {"role": "assistant", "content": said},
                    {"role": "user", "content": f"And {n}?"},
                ]
        assert upstream.refused == []
    assert len(set(names)) == 1


def test_hidden_calls_do_not_hide_a_conversation_from_the_next_proxy(tmp_path: Path) -> None:
    """The session is known by what its client sent, not by what was brought back into it."""
    settings = {"store_url": f"sqlite:///{tmp_path}/store.db"}
    asked: Any = chat(log(LINES), question="First?")
    script = (opening(1, lines="1-9"), says(text("It went well.")), SAID, SAID)
    names = []
    with Upstream(*script) as upstream:
        for proxies in (2, 1):
            with running_proxy(settings, upstream.url) as proxy:
                for _ in range(proxies):
                    answered = ask(proxy.url + path_of("openai-chat"), asked, HEADERS)
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
        answered = ask(proxy.url + path_of("openai-chat"), chat("short"), HEADERS)
        assert answered.headers["x-holdfast-session"] != "theirs"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_before_a_failure_were_billed_too(dialect: str) -> None:
    script = (opening(1, lines="1-9"), faults.status(429))
    with Upstream(*script) as upstream, running_proxy({}, upstream.url) as proxy:
        body = request_in(dialect, chat(log(LINES)))
        answered = ask(proxy.url + path_of(dialect), body, HEADERS)
        assert answered.status == 429
        [turn] = turns_of(proxy, answered)
        assert turn.status == 429
        assert turn.usage.output > 0
        assert turn.usage.expansions == 1
