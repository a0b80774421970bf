"""Requests answered from the cache: equality, stored answers, and reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.answer_cache.embedding import WordsEmbedder
from tests.fitting.test_citing import chat, log
from tests.privacy.made import UPPER, run
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import KEY, Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
)
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Script

EXACT = {"x-holdfast-answers": "exact"}
QUESTION = "How tall is the tower?"
FORMS = [(dialect, stream) for dialect in DIALECTS for stream in (False, True)]


@contextmanager
def proxied(**settings: Any) -> Iterator[tuple[Running, Upstream]]:
    """A proxy whose provider numbers its answers: one that is given twice is seen."""
    with Upstream() as upstream:
        upstream.always = lambda _: says(text(f"Answer {len(upstream.requests)}."))
        with running_proxy(settings, upstream.url) as proxy:
            yield proxy, upstream


def body_of(dialect: str, question: str = QUESTION, *, stream: bool = False, **more: Any) -> bytes:
    value = json.loads(request_in(dialect, chat(question=question), stream=stream))
    value.pop("tools", None)
    return json.dumps({**value, **more}).encode()


def asked(
    proxy: Running,
    body: bytes,
    dialect: str = "openai-chat",
    *,
    stream: bool = False,
    **headers: str,
) -> Answered:
    named = {f"x-holdfast-{name}": value for name, value in headers.items()}
    address = proxy.url + path_of(dialect, stream=stream)
    return ask(address, body, {**KEYS, **EXACT, **named})


def test_an_equal_request_is_given_the_same_bytes_again() -> None:
    with proxied() as (proxy, upstream):
        for number, (dialect, stream) in enumerate(FORMS, 1):
            body = body_of(dialect, f"What is {number}?", stream=stream)
            first = asked(proxy, body, dialect, stream=stream)
            second = asked(proxy, body, dialect, stream=stream)
            assert text_of(dialect, first, stream=stream) == f"Answer {number}."
            assert second.body == first.body
            kinds = [each.headers["content-type"].partition(";")[0] for each in (first, second)]
            assert kinds[0] == kinds[1]
            assert first.headers["x-holdfast-answer"] == "miss"
            assert second.headers["x-holdfast-answer"] == "exact"
            assert len(upstream.requests) == number
        assert upstream.refused == []


def test_a_stream_serves_one_who_wants_it_whole_and_the_other_way() -> None:
    with proxied() as (proxy, upstream):
        for number, (dialect, stream) in enumerate(FORMS, 1):
            question = f"What is {number}?"
            asked(proxy, body_of(dialect, question, stream=stream), dialect, stream=stream)
            turned = body_of(dialect, question, stream=not stream)
            other = asked(proxy, turned, dialect, stream=not stream)
            assert text_of(dialect, other, stream=not stream) == f"Answer {number}."
            assert other.headers["x-holdfast-answer"] == "exact"
            assert len(upstream.requests) == number


def test_gemini_gets_its_array_where_it_asks_for_no_events() -> None:
    with proxied() as (proxy, upstream):
        body = body_of("gemini")
        asked(proxy, body, "gemini", stream=True)
        address = proxy.url + path_of("gemini", stream=True).partition("?")[0]
        answer = ask(address, body, {**KEYS, **EXACT})
        assert answer.headers["x-holdfast-answer"] == "exact"
        parts = [
            part for chunk in answer.json for part in chunk["candidates"][0]["content"]["parts"]
        ]
        assert "".join(part["text"] for part in parts) == "Answer 1."
        assert len(upstream.requests) == 1


CHANGES: list[dict[str, Any]] = [
    {"temperature": 0.5},
    {"top_p": 0.5},
    {"seed": 7},
    {"model": "gpt-4o-mini"},
    {"max_tokens": 99},
    {"stop": ["x"]},
    {"user": "somebody"},
    {"response_format": {"type": "json_object"}},
    {"a_parameter_of_next_year": 1},
    {"tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}]},
    {"messages": [{"role": "user", "content": f"{QUESTION} "}]},
    {"messages": [{"role": "system", "content": "Brief."}, {"role": "user", "content": QUESTION}]},
    {"messages": [{"role": "user", "content": QUESTION, "name": "ann"}]},
]


def test_whatever_else_the_request_says_makes_another_of_it() -> None:
    with proxied() as (proxy, upstream):
        plain: dict[str, Any] = {"messages": [{"role": "user", "content": QUESTION}]}
        asked(proxy, body_of("openai-chat", **plain))
        for number, changed in enumerate(CHANGES, 2):
            answer = asked(proxy, body_of("openai-chat", **(plain | changed)))
            assert answer.headers["x-holdfast-answer"] == "miss", changed
            assert len(upstream.requests) == number
        budget = asked(proxy, body_of("openai-chat", **plain), budget="9000")
        assert budget.headers["x-holdfast-answer"] == "miss"


def test_the_order_of_members_and_white_space_make_no_other_request() -> None:
    with proxied() as (proxy, upstream):
        value = json.loads(body_of("openai-chat", temperature=0.0, top_p=1.0))
        asked(proxy, json.dumps(value).encode())
        turned = dict(reversed(value.items()))
        assert asked(proxy, json.dumps(turned).encode()).headers["x-holdfast-answer"] == "exact"
        assert len(upstream.requests) == 1


def test_nobody_is_answered_from_memory_who_does_not_ask_for_it() -> None:
    with proxied() as (proxy, upstream):
        for _ in range(2):
            answer = ask(proxy.url + path_of("openai-chat"), body_of("openai-chat"), KEYS)
            assert "x-holdfast-answer" not in answer.headers
        assert len(upstream.requests) == 2


def test_refresh_asks_again_and_what_comes_is_kept() -> None:
    with proxied() as (proxy, upstream):
        body = body_of("openai-chat")
        asked(proxy, body)
        fresh = asked(proxy, body, answers="refresh")
        assert text_of("openai-chat", fresh) == "Answer 2."
        proxy.settled()
        assert text_of("openai-chat", asked(proxy, body)) == "Answer 2."
        assert len(upstream.requests) == 2


def test_a_tenant_is_never_given_the_answer_of_another() -> None:
    """Every dialect, whole and as a stream, by three keys in turn."""
    with proxied(tenant_by="key") as (proxy, upstream):
        for number, (dialect, stream) in enumerate(FORMS):
            body = body_of(dialect, f"What is {number}?", stream=stream)
            address = proxy.url + path_of(dialect, stream=stream)
            texts = set()
            for key in ("a", "b", "c"):
                own = {"authorization": f"Bearer {KEY}{key}", "x-goog-api-key": f"{KEY}{key}"}
                answer = ask(address, body, {**KEYS, **EXACT, **own})
                texts.add(text_of(dialect, answer, stream=stream))
            assert len(texts) == 3
            assert len(upstream.requests) == 3 * (number + 1)


def test_what_failed_was_cut_or_says_nothing_is_never_kept() -> None:
    bad_days: list[Any] = [replace(says(text("Cut")), cut=True), says(text("")), faults.status(529)]
    with proxied() as (proxy, upstream):
        for number, (dialect, stream) in enumerate(FORMS):
            for day, script in enumerate(bad_days):
                body = body_of(dialect, f"What is {number} on {day}?", stream=stream)
                upstream.turns.append(script)
                before = len(upstream.requests)
                for _ in range(2):
                    answer = asked(proxy, body, dialect, stream=stream)
                    assert answer.headers.get("x-holdfast-answer") != "exact"
                assert len(upstream.requests) == before + 2


def test_an_answer_that_calls_a_tool_is_never_kept() -> None:
    with proxied() as (proxy, upstream):
        upstream.always = says(call("read_log", {"path": "a.log"}, "call_00"))
        body = request_in("openai-chat", chat(question="Read it."))
        for _ in range(2):
            assert asked(proxy, body).headers["x-holdfast-answer"] == "miss"
        assert len(upstream.requests) == 2


def test_an_answer_goes_with_the_content_it_was_made_from() -> None:
    with proxied() as (proxy, upstream):
        body = request_in("openai-chat", chat(log(300), question="What failed?"))
        asked(proxy, body)
        assert asked(proxy, body).headers["x-holdfast-answer"] == "exact"
        engine = proxy.service.engine
        [kept] = proxy.do(engine.answers.latest())
        assert kept.refs
        proxy.do(engine.store.forget(engine.scope, list(kept.refs)))
        assert asked(proxy, body).headers["x-holdfast-answer"] == "miss"
        assert len(upstream.requests) == 2


def test_a_hit_is_in_the_record_and_the_request_can_be_rebuilt() -> None:
    with proxied() as (proxy, _):
        body = body_of("openai-chat")
        asked(proxy, body)
        again = asked(proxy, body, session="again")
        [turn] = turns_of(proxy, again)
        [edit] = turn.edits
        assert edit.action == "answer"
        assert again.headers["x-holdfast-answer-id"] in edit.why
        assert turn.usage.answered
        assert (turn.usage.input, turn.usage.output, turn.usage.cost) == (0, 0, 0.0)
        assert turn.usage.saved == turn.usage.untouched > 0
        session = proxy.service.engine.session("again")
        assert proxy.do(session.rebuild(1)) == body
        told = json.loads(ask(f"{proxy.url}/stats").body)
        assert told["totals"]["answered"] == 1
        assert b"1 answered from memory" in ask(f"{proxy.url}/").body
        page = ask(f"{proxy.url}/sessions/again/turns/1").body
        assert b"an equal request was answered" in page
        counters = ask(f"{proxy.url}/metrics").body
        assert b'holdfast_answers_total{tier="exact"} 1.0' in counters
        assert b'holdfast_answers_total{tier="miss"} 1.0' in counters


def test_a_conversation_goes_on_after_an_answer_from_memory() -> None:
    with proxied() as (proxy, upstream):
        body = json.loads(body_of("openai-chat"))
        for name in ("one", "two"):
            asked(proxy, json.dumps(body).encode(), session=name)
        reply = {"role": "assistant", "content": "Answer 1."}
        body["messages"] += [reply, {"role": "user", "content": "Thank you."}]
        last = asked(proxy, json.dumps(body).encode(), session="two")
        assert [turn.number for turn in turns_of(proxy, last)] == [1, 2]
        assert text_of("openai-chat", last) == "Answer 2."
        assert upstream.refused == []


def test_fifty_equal_requests_at_once_are_sent_once() -> None:
    together, gate = 50, threading.Event()

    def late(got: Got) -> Script:
        del got
        assert gate.wait(20)
        return says(text("Once."))

    with proxied() as (proxy, upstream):
        upstream.always = late
        body = body_of("openai-chat")
        with ThreadPoolExecutor(together) as pool:
            asking = [pool.submit(asked, proxy, body) for _ in range(together)]
            while proxy.do(open_requests(proxy)) < together:
                pass
            gate.set()
            answers = [each.result() for each in asking]
        assert [text_of("openai-chat", answer) for answer in answers] == ["Once."] * together
        assert len(upstream.requests) == 1
        tiers = [answer.headers["x-holdfast-answer"] for answer in answers]
        assert (tiers.count("miss"), tiers.count("exact")) == (1, together - 1)


async def open_requests(proxy: Running) -> int:
    return int((await proxy.service.telemetry.metrics.figures())["open_requests"])  # type: ignore[call-overload, no-any-return]


def test_those_who_waited_for_a_request_that_failed_are_sent_themselves() -> None:
    gate = threading.Event()

    def failing(_: Got) -> Any:
        assert gate.wait(20)
        return faults.status(529) if len(upstream.requests) == 1 else says(text("Own."))

    with proxied() as (proxy, upstream):
        upstream.always = failing
        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(asked, proxy, body_of("openai-chat")) for _ in range(3)]
            while proxy.do(open_requests(proxy)) < 3:
                pass
            gate.set()
            statuses = sorted(each.result().status for each in asking)
        assert len(upstream.requests) == 3
        assert statuses[:2] == [200, 200]


@pytest.mark.parametrize("policy", ["mask", "refuse"])
def test_an_answer_with_a_secret_is_not_kept_where_the_policy_says_so(policy: str) -> None:
    secret = "AKIA" + run(16, UPPER)
    with proxied(privacy_policy=policy) as (proxy, upstream):
        upstream.always = says(text(f"The key is {secret}."))
        for _ in range(2):
            answer = asked(proxy, body_of("openai-chat"))
            assert answer.headers["x-holdfast-answer"] == "miss"
        assert len(upstream.requests) == 2


LIKE = "What is the height of the tower?", "What's the height of a tower"


def test_a_like_question_is_answered_where_nothing_stands_against_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.answer_cache.cache.open_embedder", WordsEmbedder)
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    with proxied(enable_semantic_cache=True) as (proxy, upstream):
        for more, tier in (
            ({"temperature": 0}, "semantic"),
            ({}, "miss"),
            ({"temperature": 0.7}, "miss"),
            ({"temperature": 0, "tools": tools}, "miss"),
        ):
            for question, expected in zip(LIKE, ("miss", tier), strict=True):
                body = body_of("openai-chat", question, **more)
                answer = asked(proxy, body, answers="semantic")
                assert answer.headers["x-holdfast-answer"] == expected, more
            assert asked(proxy, body, answers="exact").headers["x-holdfast-answer"] != "semantic"
        like = asked(proxy, body_of("openai-chat", LIKE[1], temperature=0), answers="refresh")
        assert like.headers["x-holdfast-answer"] == "miss"
        for question in ("When does my last order arrive?", "When will my last order arrive?"):
            body = body_of("openai-chat", question, temperature=0)
            assert asked(proxy, body, answers="semantic").headers["x-holdfast-answer"] == "miss"
        assert upstream.refused == []


def test_without_an_embedder_the_semantic_tier_is_not_there_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.answer_cache.cache.open_embedder", lambda: None)
    for enabled, why in ((True, "holdfast[embeddings]"), (False, "enable_semantic_cache")):
        with proxied(enable_semantic_cache=enabled) as (proxy, _):
            for question, tier in ((LIKE[0], "miss"), (LIKE[1], "miss"), (LIKE[0], "exact")):
                body = body_of("openai-chat", question, temperature=0)
                answer = asked(proxy, body, answers="semantic")
                assert answer.headers["x-holdfast-answer"] == tier
                assert tier == "exact" or why in answer.headers["x-holdfast-warning"]


def test_a_header_that_says_nothing_known_is_refused() -> None:
    with proxied() as (proxy, _):
        refused = asked(proxy, body_of("openai-chat"), answers="perhaps")
        assert refused.status == 400
        assert b"x-holdfast-answers" in refused.body


def test_a_history_that_the_provider_holds_is_never_answered_from_memory() -> None:
    with proxied() as (proxy, upstream):
        first = asked(proxy, body_of("openai-responses"), "openai-responses").json
        body = {"model": "gpt-4o", "input": "And now?", "previous_response_id": first["id"]}
        for _ in range(2):
            answer = asked(proxy, json.dumps(body).encode(), "openai-responses")
            assert "x-holdfast-answer" not in answer.headers
        assert len(upstream.requests) == 3
