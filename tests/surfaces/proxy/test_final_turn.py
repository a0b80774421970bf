"""A request that cannot fit any more is made the last one: no tools, and a word to the model."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import holdfast
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import (
    KEYS,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_errors import with_rules
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

LAST = "This is your final turn"
SAID: Script = says(text("Here is my report."))


def many_tools(body: dict[str, Any], number: int = 60) -> dict[str, Any]:
    long = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(20)}}
    more = [
        {"type": "function", "function": {"name": f"tool_{n}", "parameters": long}}
        for n in range(number)
    ]
    return {**body, "tools": [*body["tools"], *more]}


RULES = 12


def crowded(tools: int) -> dict[str, Any]:
    """A conversation whose rules must all be kept: with the tools they are too much."""
    body = many_tools(chat("a short result"), tools)
    rules = [
        {"role": "user", "content": f"Rule {n}: you must " + "check every single step. " * 45}
        for n in range(RULES)
    ]
    return {**body, "messages": [*body["messages"], *rules]}


def budget(dialect: str, tools: int, *, bare: bool) -> int:
    """Tokens of the crowded conversation, with all its tools or with their names alone."""
    body = crowded(tools)
    if bare:
        function = {"name": "read_log", "parameters": {"type": "object", "properties": {}}}
        body["tools"] = [{"type": "function", "function": function}]
    conversation = holdfast.read(request_in(dialect, body), dialect)
    return holdfast.count(conversation).tokens


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_tools_that_leave_no_room_are_withheld_and_that_is_said(dialect: str) -> None:
    with Upstream(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        body = request_in(dialect, crowded(2))
        limit = budget(dialect, 2, bare=True) + 120
        assert limit < budget(dialect, 2, bare=False)
        headers = {**KEYS, "x-holdfast-budget": str(limit)}
        answer = ask_model(proxy, dialect, body, headers=headers)
        assert answer.status == 200, answer.body
        assert answer.headers["x-holdfast-final"] == "true"
        assert "Tools were withheld" in answer.headers["x-holdfast-warning"]
        [sent] = provider.requests
        conversation = holdfast.read(sent.body, dialect)
        assert [tool.name for tool in conversation.tools] == ["read_log"]
        assert holdfast.count(conversation).tokens <= limit
        assert LAST in sent.body.decode()
        [turn] = turns_of(proxy, answer)
        [withheld] = [edit for edit in turn.edits if edit.action == "withhold"]
        assert "tool_0, tool_1" in withheld.what
        opened = proxy.do(
            proxy.service.engine.store.get(proxy.service.engine.scope, withheld.ref_id)
        )
        assert opened is not None
        assert b"tool_1" in opened.data
        session = proxy.service.engine.session(answer.headers["x-holdfast-session"])
        assert proxy.do(session.rebuild(1)) == body


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_more_tools_than_the_window_takes_are_set_aside(dialect: str) -> None:
    with Upstream(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        body = request_in(dialect, many_tools(chat("a short result")))
        answer = ask_model(proxy, dialect, body, headers={**KEYS, "x-holdfast-budget": "900"})
        assert answer.status == 200
        assert int(answer.headers["x-holdfast-lazy-tools"]) >= 60
        assert provider.refused == []
        assert holdfast.count(provider.requests[0].body, dialect=dialect).tokens <= 900
        session = proxy.service.engine.session(answer.headers["x-holdfast-session"])
        proxy.settled()
        assert proxy.do(session.rebuild(1)) == body


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_more_tools_than_the_window_takes_are_an_error_where_none_may_be_set_aside(
    dialect: str,
) -> None:
    with Upstream(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        body = request_in(dialect, many_tools(chat("a short result")))
        never = {"x-holdfast-budget": "900", "x-holdfast-lazy-tools": "never"}
        answer = ask_model(proxy, dialect, body, headers={**KEYS, **never})
        assert answer.status == 400
        assert "61 tools" in answer.body.decode()
        assert "Offer fewer tools" in answer.body.decode()
        assert provider.requests == []


def test_a_last_turn_leaves_the_tools_in_place_and_lets_none_be_called() -> None:
    body = crowded(2)
    body["messages"] = [*body["messages"][3:], *body["messages"][:3]]  # ends with the result
    source = holdfast.read(request_in("openai-chat", body), "openai-chat")
    fitted = holdfast.fit(source, limit=holdfast.count(source).tokens + 90)
    assert fitted.edits == ()
    body["messages"].insert(0, {"role": "user", "content": "Old words. " * 200})
    body["messages"].insert(1, {"role": "assistant", "content": "Old answer. " * 100})
    source = holdfast.read(request_in("openai-chat", body), "openai-chat")
    for limit in range(2_000, 8_000, 10):
        try:
            fitted = holdfast.fit(source, limit=limit)
        except holdfast.HoldfastError:
            continue
        if fitted.final and not any("withheld" in edit.what for edit in fitted.edits):
            break
    sent = holdfast.read(fitted.body)
    assert [tool.name for tool in sent.tools] == [tool.name for tool in source.tools]
    assert sent.rest["tool_choice"] == "none"
    assert LAST in fitted.body.decode()


def test_the_clients_tool_for_its_final_report_stays_usable() -> None:
    body = crowded(2)
    report = {"type": "object", "properties": {"text": {"type": "string"}}}
    function = {"name": "agent__final_report", "parameters": report}
    body["tools"].append({"type": "function", "function": function})
    limit = budget("openai-chat", 2, bare=True) + 220
    fitted = holdfast.fit(request_in("openai-chat", body), dialect="openai-chat", limit=limit)
    sent = holdfast.read(fitted.body)
    assert fitted.final
    assert {tool.name: tool.parameters for tool in sent.tools}["agent__final_report"] == report
    assert sent.rest["tool_choice"] == {
        "type": "function",
        "function": {"name": "agent__final_report"},
    }
    assert "`agent__final_report`" in fitted.body.decode()


def test_what_cannot_fit_even_then_is_refused_in_the_clients_dialect() -> None:
    with Upstream(SAID) as provider, running_proxy(upstream=provider.url) as proxy:
        body = request_in("openai-chat", with_rules(chat("ok")))
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
            body = request_in("openai-chat", crowded(2))
            limit = str(budget("openai-chat", 2, bare=True) + 120)
            ask_model(proxy, "openai-chat", body, headers={"x-holdfast-budget": limit})
        said = [r.getMessage() for r in caplog.records if r.name == "holdfast.guard"]
        assert any("forced_final" in line for line in said)
        assert any("context-guard/enforce" in line for line in said) == debug
        assert not any("a short result" in line for line in said)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("stream", [False, True])
def test_with_token_management_off_bodies_pass_byte_for_byte(dialect: str, stream: bool) -> None:
    off = {"token_management_enabled": False}
    with Upstream(SAID) as provider, running_proxy(off, provider.url) as proxy:
        body = request_in(dialect, chat(log(300)), stream=stream).replace(b", ", b" ,\n ")
        answered = ask_model(proxy, dialect, body, stream=stream)
        assert answered.status == 200, answered.body
        [sent] = provider.requests
        assert sent.body == body
        assert not any(name.startswith("x-holdfast-") for name in answered.headers)
