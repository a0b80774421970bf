"""A request that cannot fit any more is made the last one: no tools, and a word to the model."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import holdfast
from tests.fitting.test_citing import chat, log
from tests.proxy.gatekeeper import KEY
from tests.proxy.harness import ask, path_of, request_in, running_proxy
from tests.proxy.spoken import says, text
from tests.proxy.upstream import Upstream
from tests.wire.answers.streams import Script

LAST = "This is your final turn"
SAID: Script = says(text("Here is my report."))
KEYS = {"authorization": f"Bearer {KEY}", "x-goog-api-key": KEY, "anthropic-version": "2023-06-01"}


def many_tools(body: dict[str, Any], number: int = 60) -> dict[str, Any]:
    long = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(20)}}
    more = [
        {"type": "function", "function": {"name": f"tool_{n}", "parameters": long}}
        for n in range(number)
    ]
    return {**body, "tools": [*body["tools"], *more]}


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_tools_that_do_not_fit_go_and_the_model_is_told_to_end(dialect: str) -> None:
    with Upstream(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        body = request_in(dialect, many_tools(chat("a short result")))
        answer = ask(proxy.url + path_of(dialect), body, {**KEYS, "x-holdfast-budget": "900"})
        assert answer.status == 200, answer.body
        assert answer.headers["x-holdfast-final"] == "true"
        [sent] = provider.requests
        conversation = holdfast.read(sent.body, dialect)
        assert [tool.name for tool in conversation.tools] == ["read_log"]
        assert holdfast.count(conversation).tokens <= 900
        assert LAST in sent.body.decode()


def test_what_cannot_fit_even_then_is_refused_in_the_clients_dialect() -> None:
    with Upstream(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        body = request_in("openai-chat", chat("ok", question="Why? " * 3000))
        url = proxy.url + path_of("openai-chat")
        answer = ask(url, body, {**KEYS, "x-holdfast-budget": "900"})
        assert answer.status == 400
        assert answer.json["error"]["code"] == "context_length_exceeded"
        assert provider.requests == []


def test_the_guard_tells_what_it_sees_if_it_is_asked_to(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdfast.guard")
    for debug in (False, True):
        caplog.clear()
        with running_proxy({"context_debug": debug}) as proxy:
            body = request_in("openai-chat", many_tools(chat("a short result")))
            ask(proxy.url + path_of("openai-chat"), body, {"x-holdfast-budget": "900"})
        said = [r.getMessage() for r in caplog.records if r.name == "holdfast.guard"]
        assert any("forced_final" in line for line in said)
        assert any("context-guard/enforce" in line for line in said) == debug
        assert not any("a short result" in line for line in said)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("stream", [False, True])
def test_with_token_management_off_bodies_pass_byte_for_byte(dialect: str, stream: bool) -> None:
    off = {"enable_token_management": False}
    with Upstream(SAID) as provider, running_proxy(off, provider.url) as proxy:
        body = request_in(dialect, chat(log(300)), stream=stream).replace(b", ", b" ,\n ")
        answered = ask(proxy.url + path_of(dialect, stream=stream), body, KEYS)
        assert answered.status == 200, answered.body
        [sent] = provider.requests
        assert sent.body == body
        assert not any(name.startswith("x-holdfast-") for name in answered.headers)
