"""The mode assemble: chats of any length at a fixed size, valid for every provider, on record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import histories
from tests.fitting.test_citing import log
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Answered,
    Running,
    ask,
    ask_model,
    request_in,
    running_proxy,
    text_of,
    turns_of,
)
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.talking import Chat, close_clients
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

ASSEMBLE = {**KEYS, "x-holdfast-mode": "assemble"}
BUDGET = 3_000
SECRET = "The spare key of the harbour office lies under the blue anchor."
QUESTION = "Where does the spare key of the harbour office lie?"


@contextmanager
def proxied(**overrides: Any) -> Iterator[tuple[Running, Upstream]]:
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        with running_proxy({"mode": "assemble", **overrides}, upstream.url) as proxy:
            yield proxy, upstream


def history(pairs: int, *, words: int = 60) -> list[dict[str, Any]]:
    """Return a chat about a harbour with one early fact."""
    messages: list[dict[str, Any]] = []
    for n in range(pairs):
        said = SECRET if n == 2 else f"Ship {n} came in with {n * 7} crates. " + "It was calm. " * 9
        answer = f"I noted ship {n}. " + " ".join(f"word{n}-{m}" for m in range(words))
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
    return messages


def asking(
    messages: list[dict[str, Any]], question: str = QUESTION, *, system: str = "Be brief."
) -> dict[str, Any]:
    return {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": system},
            *messages,
            {"role": "user", "content": question},
        ],
    }


def asked(
    proxy: Running,
    body: dict[str, Any] | bytes,
    dialect: str = "openai-chat",
    headers: Mapping[str, str] = KEYS,
) -> Answered:
    sent_body = body if isinstance(body, bytes) else request_in(dialect, body)
    answered = ask_model(proxy, dialect, sent_body, headers=headers)
    assert answered.status == 200, answered.body
    return answered


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_chat_goes_out_small_valid_and_with_what_the_question_needs(dialect: str) -> None:
    with proxied() as (proxy, upstream):
        body = request_in(dialect, asking(history(60)))
        answered = asked(proxy, body, dialect)
        [got] = upstream.requests
        assert got.least <= int(answered.headers["x-holdfast-tokens"]) <= BUDGET
        saved, sent = (int(answered.headers[f"x-holdfast-{name}"]) for name in ("saved", "tokens"))
        assert saved > 0.7 * (saved + sent), "the seed asks for 70 % less (004-01)"
        assert answered.headers["x-holdfast-mode"] == "assemble"
        assert SECRET in got.texts
        assert "word59-59" in got.texts, "the last answer stays whole"
        assert QUESTION in got.texts
        assert {"expand_ref", "recall"} <= got.tools
        session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
        assert turns_of(proxy, answered)[0].edits
        assert proxy.do(session.rebuild(1)) == body


def test_it_is_off_unless_asked_for() -> None:
    with proxied(mode="fit") as (proxy, upstream):
        body = request_in("openai-chat", asking(history(60)))
        asked(proxy, body)
        answered = asked(proxy, body, headers=ASSEMBLE)
        assert answered.headers["x-holdfast-mode"] == "assemble"
        assert upstream.requests[0].body == body
        assert upstream.requests[1].tokens <= BUDGET


def test_a_chat_that_fits_goes_out_as_it_came() -> None:
    with proxied() as (proxy, upstream):
        body = request_in("openai-chat", asking(history(4)))
        answered = asked(proxy, body)
        assert upstream.requests[0].body == body
        assert "x-holdfast-mode" not in answered.headers


def test_a_request_that_is_sent_again_goes_out_with_the_same_bytes() -> None:
    with proxied() as (proxy, upstream):
        body = request_in("openai-chat", asking(history(60)))
        asked(proxy, body)
        asked(proxy, body)
        assert upstream.requests[0].body == upstream.requests[1].body


def test_rules_and_tools_have_the_same_bytes_turn_after_turn() -> None:
    with proxied() as (proxy, upstream):
        for pairs in range(50, 54):
            asked(proxy, asking(history(pairs), f"And ship {pairs - 3}?"))
        heads = {json.dumps(got.value["messages"][0]) for got in upstream.requests}
        tools = {json.dumps(got.value["tools"]) for got in upstream.requests}
        assert len(heads) == len(tools) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_inside_a_tool_exchange_nothing_is_assembled_anew(dialect: str) -> None:
    """The call and its result follow the assembled turn, byte for byte."""
    tool = {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
    body = {**asking(history(60)), "tools": [tool]}
    call_made = {
        "id": "call_7",
        "type": "function",
        "function": {"name": "read_log", "arguments": '{"path": "a.log"}'},
    }
    looped = {
        **body,
        "messages": [
            *body["messages"],
            {"role": "assistant", "content": None, "tool_calls": [call_made]},
            {"role": "tool", "tool_call_id": "call_7", "content": "the office is open"},
        ],
    }
    with proxied() as (proxy, upstream):
        asked(proxy, body, dialect)
        second = request_in(dialect, looped)
        answered = asked(proxy, second, dialect)
        first, then = (spoken(got) for got in upstream.requests)
        assert then[: len(first)] == first
        assert len(then) == len(first) + 2
        assert upstream.requests[0].tools == upstream.requests[1].tools
        session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
        proxy.settled()
        assert proxy.do(session.rebuild(2)) == second


def spoken(got: Got) -> list[Any]:
    names = {"openai-responses": "input", "gemini": "contents"}
    messages: list[Any] = got.value[names.get(got.dialect, "messages")]
    return messages


def test_results_of_earlier_turns_are_stored_and_named_by_their_refs() -> None:
    body = asking(history(30))
    call_made = {
        "id": "call_7",
        "type": "function",
        "function": {"name": "read_log", "arguments": '{"path": "a.log"}'},
    }
    body["messages"][5:5] = [
        {"role": "assistant", "content": None, "tool_calls": [call_made]},
        {"role": "tool", "tool_call_id": "call_7", "content": log(400)},
    ]
    body["tools"] = [
        {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
    ]
    with proxied() as (proxy, upstream):
        answered = asked(proxy, body)
        assert "Stored results, opened with expand_ref(ref_id):" in upstream.requests[0].texts
        assert "ref:log:" in upstream.requests[0].texts
        session = proxy.service.engine.session(answered.headers["x-holdfast-session"])
        proxy.settled()
        assert json.loads(proxy.do(session.rebuild(1))) == body


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_model_can_ask_for_what_was_left_out(dialect: str, stream: bool) -> None:
    recalls = says(call("recall", {"query": "crates of ship 17"}, "call_01"))

    def answers(got: Got) -> Script:
        assert "Ship 17 came in with 119 crates." in got.texts
        return says(text("119 crates."))

    with Upstream(recalls, answers) as upstream:
        with running_proxy({"mode": "assemble"}, upstream.url) as proxy:
            body = request_in(dialect, asking(history(60)), stream=stream)
            answered = ask_model(proxy, dialect, body, stream=stream)
            assert text_of(dialect, answered, stream=stream) == "119 crates."
            assert b"recall" not in answered.body
        assert upstream.refused == []
        assert len(upstream.requests) == 2


def test_a_session_by_its_name_goes_on_from_another_device() -> None:
    named = {**KEYS, "x-holdfast-session": "harbour"}
    with proxied() as (proxy, upstream):
        asked(proxy, asking(history(8), "Thanks."), headers=named)
        elsewhere = request_in(
            "openai-chat", {"model": "gpt-5", "messages": asking([])["messages"]}
        )
        answered = asked(proxy, elsewhere, headers=named)
        assert SECRET in upstream.requests[1].texts
        assert "I noted ship 7." in upstream.requests[1].texts
        session = proxy.service.engine.session("harbour")
        proxy.settled()
        assert proxy.do(session.rebuild(2)) == elsewhere
        assert int(answered.headers["x-holdfast-edits"]) > 0


def test_another_proxy_over_the_same_store_goes_on(tmp_path: Path) -> None:
    store = {"store_url": f"sqlite:///{tmp_path / 'holdfast.db'}"}
    with proxied(**store) as (proxy, upstream):
        asked(proxy, asking(history(60)))
        first = upstream.requests[0].body
    with proxied(**store) as (proxy, upstream):
        body = request_in("openai-chat", asking(history(60)))
        answered = asked(proxy, body)
        assert upstream.requests[0].body == first
        answer = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Well."}]
        later = asked(proxy, asking([*history(60), *answer], "And now?"))
        assert later.headers["x-holdfast-session"] == answered.headers["x-holdfast-session"]
        assert upstream.requests[1].tokens <= BUDGET


def test_where_rules_and_tools_leave_no_room_the_request_is_fitted_and_that_is_said() -> None:
    with proxied() as (proxy, upstream):
        body = request_in("openai-chat", asking(history(60), system="Mind the tide. " * 1_000))
        answered = asked(proxy, body)
        assert upstream.requests[0].body == body
        assert "leave no room to assemble" in answered.headers["x-holdfast-warning"]


def test_a_smaller_budget_is_kept_too() -> None:
    with proxied(assemble_tokens=1_000) as (proxy, upstream):
        answered = asked(proxy, asking(history(60)))
        assert int(answered.headers["x-holdfast-tokens"]) <= 1_000
        answered = asked(proxy, asking(history(61)), headers={**KEYS, "x-holdfast-budget": "600"})
        assert int(answered.headers["x-holdfast-tokens"]) <= 600
        assert SECRET in upstream.requests[0].texts


def test_what_a_policy_refuses_to_store_is_not_taken_out() -> None:
    secret = "AKIA" + "Z" * 4 + "QWERTYUIOPAS"
    messages = history(60)
    messages[2]["content"] = f"The key is {secret}."
    with proxied(privacy_policy="refuse") as (proxy, upstream):
        asked(proxy, asking(messages))
        assert secret in upstream.requests[0].texts
        remembered = proxy.do(proxy.service.engine.recall("What is the key?", token_budget=9_000))
        assert secret not in remembered.text


def test_a_client_that_asks_for_a_count_is_told_what_a_turn_has_at_most() -> None:
    body = request_in("anthropic", asking(history(60)))
    with running_proxy({"mode": "assemble"}) as proxy:
        counts = [
            ask(f"{proxy.url}/v1/messages/count_tokens", body, {**KEYS, "x-holdfast-mode": mode})
            for mode in ("assemble", "fit")
        ]
    assembled, fitted = (answered.json["input_tokens"] for answered in counts)
    assert assembled == BUDGET < fitted


def chat_through(turns: int, url: str) -> Chat:
    chat = Chat(url, stream=False)
    for n in range(turns):
        chat.ask(
            SECRET if n == 2 else f"Ship {n} came in with {n * 7} crates. " + "It was calm. " * 9
        )
    chat.ask(QUESTION)
    return chat


def check_long_chat(turns: int) -> None:
    with proxied() as (proxy, upstream):
        upstream.always = says(text("I noted that ship. " + "The tide is fine. " * 30))
        try:
            chat_through(turns, proxy.url)
        finally:
            close_clients()
        assert upstream.refused == []
        assert SECRET in upstream.requests[-1].texts
        assert max(got.least for got in upstream.requests) <= BUDGET


def test_a_real_client_chats_on_and_on_and_what_it_said_first_is_still_there() -> None:
    check_long_chat(20)


@pytest.mark.campaign
def test_so_it_does_for_three_hundred_turns() -> None:
    check_long_chat(300)


def check_long_offline_chat(turns: int) -> None:
    with running_proxy({"mode": "assemble"}) as proxy:
        try:
            chat = chat_through(turns, proxy.url)
        finally:
            close_clients()
        assert "under the blue anchor" in chat.history[-1]["content"]


def test_the_offline_model_answers_a_real_client_from_its_third_turn() -> None:
    check_long_offline_chat(12)


@pytest.mark.campaign
def test_so_it_does_after_three_hundred_turns() -> None:
    check_long_offline_chat(300)


def test_the_offline_model_answers_from_what_was_said_in_the_third_turn() -> None:
    with running_proxy({"mode": "assemble"}) as proxy:
        body = request_in("openai-chat", asking(history(60)))
        answered = ask_model(proxy, "openai-chat", body)
        assert "under the blue anchor" in text_of("openai-chat", answered)


def test_a_history_that_is_too_long_for_one_request_is_remembered_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """40,000 messages held the event loop for 2.7 seconds; nothing of them may be lost."""
    monkeypatch.setattr(histories, "MOST_NEW", 50)
    messages = history(60)
    with proxied() as (proxy, upstream):
        for turn in range(2):
            answered = asked(proxy, asking(messages, f"And now, {turn}?"))
            assert histories.STILL_READING in answered.headers["x-holdfast-warning"]
            assert "x-holdfast-mode" not in answered.headers
            messages += [
                {"role": "user", "content": f"And now, {turn}?"},
                {"role": "assistant", "content": "Well."},
            ]
        answered = asked(proxy, asking(messages))
        assert "x-holdfast-warning" not in answered.headers
        assert answered.headers["x-holdfast-mode"] == "assemble"
        assert int(answered.headers["x-holdfast-tokens"]) <= BUDGET
        assert SECRET in upstream.requests[-1].texts
        session = answered.headers["x-holdfast-session"]
        recent = proxy.do(proxy.service.engine.memory.recent(session, pairs=100))
        said = [turn.content for turn in recent]
        assert said == [message["content"].strip() for message in messages]
