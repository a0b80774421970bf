"""A client of one vendor before an upstream of another: requests and answers are translated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from holdfast.settings import UpstreamEntry
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    DIALECTS,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
    usage_of,
)
from tests.surfaces.proxy.spoken import call, opens, says, text
from tests.surfaces.proxy.upstream import Turn, Upstream

SPEAKS = ("openai", "openai-chat", "anthropic", "gemini")
MODELS = {
    "openai": "gpt-4o",
    "openai-chat": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}
PAIRS = [
    (dialect, speaks)
    for dialect in DIALECTS
    for speaks in SPEAKS
    if not dialect.startswith(speaks) or (dialect, speaks) == ("openai-responses", "openai-chat")
]
HEADERS = {"anthropic-version": "2023-06-01", "authorization": f"Bearer {KEY}"}
LOOKS = says(
    text("I look."),
    call("read_log", {"path": "a.log"}, "call_1"),
    call("read_log", {"path": "b.log", "lines": [1, 2]}, "call_2"),
)


def behind(upstream: Upstream, speaks: Any) -> dict[str, Any]:
    """Settings that send every model to an upstream of another dialect."""
    entry = UpstreamEntry(upstream.url, speaks, model=MODELS[speaks], key=KEY)
    return {"upstreams": {"other": entry}}


@contextmanager
def across(speaks: str, *turns: Turn) -> Iterator[tuple[Running, Upstream]]:
    """A proxy that sends every model to an upstream with a script, in its dialect."""
    with Upstream(*turns) as other, running_proxy(behind(other, speaks)) as proxy:
        yield proxy, other


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("dialect", "speaks"), PAIRS)
def test_it_is_answered_in_its_own_dialect(dialect: str, speaks: str, stream: bool) -> None:
    with across(speaks, says(text("Hello, ", "you."))) as (proxy, other):
        body = request_in(dialect, chat("short"), stream=stream)
        answered = ask(proxy.url + path_of(dialect, stream=stream), body, HEADERS)
        assert answered.status == 200, answered.body
        assert text_of(dialect, answered, stream=stream) == "Hello, you."
        assert min(usage_of(dialect, answered, stream=stream)) > 0
        assert not other.refused
        assert other.requests[0].dialect != dialect
        assert other.requests[0].model == MODELS[speaks]
        assert answered.headers["x-holdfast-upstream"] == "other"
        [turn] = turns_of(proxy, answered)
        [edit] = [edit for edit in turn.edits if edit.action == "route"]
        assert f"as {other.requests[0].dialect}" in edit.what
        session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
        assert proxy.do(session.rebuild(turn.number)) == body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("dialect", "speaks"), PAIRS)
def test_what_is_cited_is_opened_across_dialects(dialect: str, speaks: str, stream: bool) -> None:
    with across(speaks, opens("lines 1-5"), says(text("Done."))) as (proxy, other):
        body = request_in(dialect, chat(log(400)), stream=stream)
        answered = ask(proxy.url + path_of(dialect, stream=stream), body, HEADERS)
        assert text_of(dialect, answered, stream=stream).endswith("Done.")
        assert "expand_ref" not in answered.body.decode()
        assert int(answered.headers["x-holdfast-saved"]) > 1_000
        assert not other.refused
        assert len(other.requests) == 2


@pytest.mark.parametrize(("dialect", "speaks"), PAIRS)
def test_errors_come_in_the_clients_words(dialect: str, speaks: str) -> None:
    with Upstream(faults.status(400)) as other, running_proxy(behind(other, speaks)) as proxy:
        answered = ask(proxy.url + path_of(dialect), request_in(dialect, chat("short")), HEADERS)
        assert answered.status == 400
        assert answered.json["error"]["message"]
        assert ("type" in answered.json) == (dialect == "anthropic")


TOOL = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "array"}},
    "required": ["path"],
}
QUESTION = "Which log is longer?"


def two_calls(calls: list[tuple[str, Any]]) -> None:
    assert calls == [
        ("read_log", {"path": "a.log"}),
        ("read_log", {"path": "b.log", "lines": [1, 2]}),
    ]


def openais(proxy: Running, stream: bool) -> list[tuple[str, Any]]:
    """The official client of OpenAI, with tools: the calls it sees."""
    tools: Any = [{"type": "function", "function": {"name": "read_log", "parameters": TOOL}}]
    messages: Any = [{"role": "user", "content": QUESTION}]
    with openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY) as client:
        if stream:
            with client.chat.completions.stream(
                model="any", messages=messages, tools=tools
            ) as events:
                message = events.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(model="any", messages=messages, tools=tools)
            message = answer.choices[0].message  # type: ignore[assignment]
    calls: Any = message.tool_calls or []
    return [(each.function.name, json.loads(each.function.arguments)) for each in calls]


def anthropics(proxy: Running, stream: bool) -> list[tuple[str, Any]]:
    """The same with Anthropic's."""
    asked: Any = {
        "model": "any",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": [{"name": "read_log", "input_schema": TOOL}],
    }
    with anthropic.Anthropic(base_url=proxy.url, api_key=KEY) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    assert message.stop_reason == "tool_use"
    return [(block.name, block.input) for block in message.content if block.type == "tool_use"]


def googles(proxy: Running, stream: bool) -> list[tuple[str, Any]]:
    """The same with Google's."""
    declared: Any = {"name": "read_log", "parametersJsonSchema": TOOL}
    config: Any = {
        "tools": [{"functionDeclarations": [declared]}],
        "automatic_function_calling": {"disable": True},
    }
    options: Any = {"base_url": proxy.url}
    client = genai.Client(api_key=KEY, http_options=options)
    try:
        if stream:
            parts = client.models.generate_content_stream(
                model="any", contents=QUESTION, config=config
            )
            answers = list(parts)
        else:
            answers = [
                client.models.generate_content(model="any", contents=QUESTION, config=config)
            ]
    finally:
        client.close()
    return [
        (each.name or "", each.args) for answer in answers for each in answer.function_calls or []
    ]


CLIENTS = {"openai-chat": openais, "anthropic": anthropics, "gemini": googles}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("dialect", "speaks"), [pair for pair in PAIRS if pair[0] in CLIENTS and pair[1] != "openai"]
)
def test_official_clients_call_tools_across_dialects(
    dialect: str, speaks: str, stream: bool
) -> None:
    with Upstream(LOOKS) as other, running_proxy(behind(other, speaks)) as proxy:
        two_calls(CLIENTS[dialect](proxy, stream))
        assert not other.refused


def test_what_cannot_be_carried_is_told() -> None:
    with across("anthropic", says(text("Hello."))) as (proxy, _):
        body = chat("short") | {"logit_bias": {"50256": -100}}
        answered = ask(proxy.url + path_of("openai-chat"), body, HEADERS)
        assert "logit_bias" in answered.headers["x-holdfast-not-carried"]
        [turn] = turns_of(proxy, answered)
        assert "logit_bias" in turn.edits[-1].why


@pytest.mark.parametrize(
    ("dialect", "held"),
    [
        ("openai-responses", {"previous_response_id": "resp_1"}),
        ("openai-responses", {"conversation": "conv_1"}),
        ("openai-responses", {"conversation": {"id": "conv_1"}}),
        ("openai-responses", {"prompt": {"id": "pmpt_1"}}),
        ("gemini", {"cachedContent": "cachedContents/1"}),
    ],
)
def test_a_history_that_another_provider_holds_is_refused_and_not_left_out(
    dialect: str, held: dict[str, Any]
) -> None:
    with across("anthropic", says(text("Hello."))) as (proxy, other):
        body = json.loads(request_in(dialect, chat("short"))) | held
        answered = ask(proxy.url + path_of(dialect), body, HEADERS)
        assert answered.status == 400
        assert next(iter(held)) in answered.body.decode()
        assert "the history is held by a provider that is not other" in answered.body.decode()
        assert not other.requests
