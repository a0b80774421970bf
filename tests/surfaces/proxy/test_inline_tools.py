"""The tool in a message, through the proxy: opened as always, hidden from the client, on record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fitting.test_citing import chat, log
from tests.provider.tool_changes import BETA, added
from tests.surfaces.proxy.harness import (
    KEYS,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_opening import opening
from tests.surfaces.proxy.upstream import Upstream

MODELS = {"anthropic": "claude-opus-5-5", "openai-responses": "gpt-5"}
CODES = "What is in line 17?"


def body_of(dialect: str, *results: str) -> bytes:
    value = json.loads(request_in(dialect, chat(*results, question=CODES)))
    return json.dumps({**value, "model": MODELS[dialect]}).encode()


def sent_tools(value: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The names of tools among the others, and of those in messages."""
    return [t["name"] for t in value["tools"]], [str(t["name"]) for t in added(value)]


def rebuilt(proxy: Running, session: str, number: int) -> bytes:
    return proxy.do(proxy.service.engine.session(session).rebuild(number))


@pytest.mark.parametrize("dialect", MODELS)
def test_what_is_opened_stays_hidden_and_the_request_is_rebuilt(dialect: str) -> None:
    headers = {**KEYS, "anthropic-beta": f"claude-code-20250219, {BETA}"}
    bodies = [body_of(dialect, *results) for results in (["fine"], ["fine", log(900)])]
    with Upstream() as upstream:
        with running_proxy({"offer_expand": "inline"}, upstream.url) as proxy:
            upstream.turns.extend([says(text("Go on.")), opening(0, lines="17-17")])
            upstream.always = says(text("It went well."))
            for body in bodies:
                answered = ask_model(proxy, dialect, body, headers=headers)
                assert answered.status == 200, answered.body
                proxy.settled()
            session = answered.headers["x-holdfast-session"]
            turns = turns_of(proxy, answered)
            assert [rebuilt(proxy, session, turn.number) for turn in turns] == bodies
        assert text_of(dialect, answered) == "It went well."
        assert b"expand_ref" not in answered.body
        assert upstream.refused == []
        shown = [sent_tools(got.value) for got in upstream.requests]
        assert shown == [(["read_log"], []), *[(["read_log"], ["expand_ref"])] * 2]
        assert upstream.requests[0].body == bodies[0]


@pytest.mark.parametrize("dialect", MODELS)
def test_it_stands_where_it_stood_after_a_restart(dialect: str, tmp_path: Path) -> None:
    settings = {"offer_expand": "inline", "store_url": f"sqlite:///{tmp_path}/store.db"}
    headers = {**KEYS, "anthropic-beta": BETA}
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        for results in (["fine", log(900)], ["fine", log(900), "good"]):
            with running_proxy(settings, upstream.url) as proxy:
                answered = ask(proxy.url + path_of(dialect), body_of(dialect, *results), headers)
                assert answered.status == 200, answered.body
        assert upstream.refused == []
        before, now = (got.value.get("messages") or got.value["input"] for got in upstream.requests)
        assert now[: len(before)] == before
        assert [sent_tools(got.value)[1] for got in upstream.requests] == [["expand_ref"]] * 2


def test_without_the_beta_it_stands_among_the_tools() -> None:
    with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.always = says(text("Well."))
        ask(proxy.url + path_of("anthropic"), body_of("anthropic", log(900)), KEYS)
        assert upstream.refused == []
        assert sent_tools(upstream.requests[0].value) == (["read_log", "expand_ref"], [])
