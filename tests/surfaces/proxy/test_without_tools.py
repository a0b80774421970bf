"""Clients that send no tools: nothing is hidden that their models could not open."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.fitting.test_in_place import ANSWER, ASKED, LEFT_OUT, files, source_file
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    PASSING,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import REF, says, text
from tests.surfaces.proxy.upstream import Upstream

WORDS = "The weather in the harbour was calm and the ferries went out on time. "


def talk(turns: int = 60) -> list[dict[str, Any]]:
    """Return a chat whose last question needs one early answer."""
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"{n} {WORDS * 2}"} for n in range(turns)
    ]
    messages[7]["content"] = ANSWER
    return [*messages, {"role": "user", "content": ASKED}]


def body_of(dialect: str, messages: list[dict[str, Any]]) -> bytes:
    return request_in(dialect, {"model": "gpt-4o", "messages": messages})


@pytest.mark.parametrize("dialect", [*DIALECTS, *PASSING])
def test_a_long_chat_is_shortened_in_place(dialect: str) -> None:
    body = body_of(dialect, talk())
    headers = {**KEYS, "x-holdfast-budget": "1200"}
    with Upstream(says(text("Port 8417."))) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, body, headers=headers)
        assert answered.status == 200, answered.body
        [got] = upstream.requests
        assert REF.findall(got.texts) == []
        assert not got.tools
        assert ANSWER in got.texts
        assert LEFT_OUT.search(got.texts)
        assert got.texts.rstrip().endswith(ASKED)
        [turn] = turns_of(proxy, answered)
        assert {edit.action for edit in turn.edits} <= {"drop", "shorten", "usage"}
        session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
        assert proxy.do(session.rebuild(1)) == body
        assert "no tool" in answered.headers["x-holdfast-warning"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_files_of_an_editor_are_shortened_and_the_model_is_offered_nothing(stream: bool) -> None:
    """As aider sends them: system, files, an answer, the question, system again."""
    messages = [
        {"role": "system", "content": "Act as an expert software developer."},
        {"role": "user", "content": files(*(source_file(n) for n in range(8)))},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": "What does step_5_41 in src/part5.py return?"},
        {"role": "system", "content": "Reply in English."},
    ]
    body = request_in("openai-chat", {"model": "gpt-4o", "messages": messages}, stream=stream)
    headers = {**KEYS, "x-holdfast-budget": "3000"}
    with Upstream(says(text("value * 41 + 5"))) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            answered = ask_model(proxy, "openai-chat", body, headers=headers)
        assert answered.status == 200, answered.body
        [got] = upstream.requests
        sent = got.value["messages"]
        assert not got.tools
        assert "def step_5_41(value):\n    return value * 41 + 5\n" in sent[1]["content"]
        assert sent[1]["content"].count("```") == 16
        assert [sent[n] for n in (0, 2, 3, 4)] == [messages[n] for n in (0, 2, 3, 4)]


OVERFLOWS = {
    "openai-chat": "maximum context length is 900 tokens",
    "openai-responses": "maximum context length is 900 tokens",
    "anthropic": "prompt is too long",
    "gemini": "exceeds the maximum number of tokens allowed (900)",
    "converse": "Input is too long for requested model",
    "cohere": "too many tokens",
}


@pytest.mark.parametrize("dialect", OVERFLOWS)
def test_what_cannot_fit_is_refused_as_the_provider_would(dialect: str) -> None:
    """The newest message stays whole, so that the client's own handling of overflows begins."""
    newest = "Observation:\n" + "\n".join(f"{n:04} step {n} done" for n in range(600))
    messages = [*talk(20)[:-1], {"role": "user", "content": newest}]
    headers = {**KEYS, "x-holdfast-budget": "900"}
    with Upstream(says(text("Never."))) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask(proxy.url + path_of(dialect), body_of(dialect, messages), headers)
        assert upstream.requests == []
    assert answered.status == 400
    assert OVERFLOWS[dialect] in answered.body.decode()
    if dialect.startswith("openai"):
        assert answered.json["error"]["code"] == "context_length_exceeded"


def test_a_chat_that_goes_on_is_sent_with_the_same_bytes() -> None:
    headers = {**KEYS, "x-holdfast-budget": "1200"}
    messages = talk(40)
    sent: list[list[Any]] = []
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.always = says(text("Port 8417."))
        for n in range(12):
            answered = ask(
                proxy.url + path_of("openai-chat"), body_of("openai-chat", messages), headers
            )
            assert answered.status == 200, answered.body
            sent.append(json.loads(upstream.requests[-1].body)["messages"])
            messages = [
                *messages,
                {"role": "assistant", "content": f"{n} Port 8417. {WORDS}"},
                {"role": "user", "content": ASKED},
            ]
            proxy.settled()
    same = [after[: len(before)] == before for before, after in itertools.pairwise(sent)]
    assert sum(same) >= 8, "a prefix breaks only where room must be made again"
