"""Answers in one piece: read, joined, composed, and told as errors."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.budget.usage import Usage, reported_usage
from holdfast.errors import ProviderError
from holdfast.wire.responses import (
    ModelCall,
    OfflineResponse,
    Relay,
    add_usage,
    compose_response,
    context_usage,
    error_body,
    error_event,
    join_responses,
    read_response,
    stream_response,
)
from tests.wire.responses.streams import DIALECTS, HIDDEN, events, hidden, understand, words
from tests.wire.responses.test_relay import junk_values, run

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
dialects = st.sampled_from(DIALECTS)

arguments = st.dictionaries(words, words, max_size=2).map(json.dumps)


@st.composite
def answers(
    draw: st.DrawFn, names: tuple[str, ...] = ("look_up", HIDDEN), said: bool | None = None
) -> OfflineResponse:
    calls = draw(st.lists(st.tuples(st.sampled_from(names), arguments), max_size=3))
    texts = st.lists(words, min_size=1 if said else 0, max_size=3)
    return OfflineResponse(
        id="a1",
        model="m",
        created=1_700_000_000,
        pieces=tuple(draw(texts)),
        calls=tuple(ModelCall(f"c{n}", name, given) for n, (name, given) in enumerate(calls)),
        input_tokens=draw(st.integers(1, 1000)),
        output_tokens=draw(st.integers(1, 1000)),
        cut=draw(st.booleans()),
    )


def shown(said: OfflineResponse) -> list[str]:
    return [call.id for call in said.calls if call.name != HIDDEN]


@given(answers(), dialects)
def test_what_is_composed_is_read(said: OfflineResponse, dialect: str) -> None:
    answer = read_response(compose_response(said, dialect), dialect)
    assert "".join(answer.texts) == said.text
    assert [(c.id, c.name, json.loads(c.arguments)) for c in answer.calls] == [
        (c.id, c.name, json.loads(c.arguments)) for c in said.calls
    ]
    assert reported_usage(answer.usage) == Usage(said.input_tokens, said.output_tokens)
    assert answer.stop_reason
    assert not answer.error


@given(answers(), dialects)
def test_a_composed_stream_is_well_formed_and_says_the_same(
    said: OfflineResponse, dialect: str
) -> None:
    stream = list(stream_response(said, dialect))
    seen = understand(b"".join(stream), dialect)
    assert seen.text == said.text
    assert [call[:2] for call in seen.calls] == [(call.id, call.name) for call in said.calls]
    relay = Relay(dialect, hidden)
    run(relay, stream)
    answer = read_response(compose_response(said, dialect), dialect)
    assert relay.stop_reason == answer.stop_reason
    assert relay.usage == answer.usage
    if dialect != "openai-chat" or said.text or said.calls:
        assert [json.loads(raw) for raw in relay.assistant_turn] == [
            json.loads(raw) for raw in answer.turn
        ]


def test_chat_usage_is_streamed_only_where_it_was_asked_for() -> None:
    said = OfflineResponse(
        id="a", model="m", created=1, pieces=("x",), input_tokens=1, output_tokens=1
    )
    assert b"prompt_tokens" not in b"".join(stream_response(said, "openai-chat", usage=False))


@given(answers(names=("look_up",)), dialects)
def test_an_answer_that_hides_nothing_is_given_back_as_it_came(
    said: OfflineResponse, dialect: str
) -> None:
    body = json.dumps(json.loads(compose_response(said, dialect)), indent=2).encode()
    assert join_responses([body], dialect, hidden) == body


@given(st.lists(answers(), min_size=1, max_size=3), dialects)
def test_joined_answers_say_all_that_is_not_hidden_and_what_it_cost(
    several: list[OfflineResponse], dialect: str
) -> None:
    # Only the last upstream answer may hold calls for the client.
    *before, last = several
    bodies = [
        compose_response(_without_visible(said, n), dialect) for n, said in enumerate(before)
    ] + [compose_response(last, dialect)]
    joined = join_responses(bodies, dialect, hidden)
    assert HIDDEN.encode() not in joined
    answer = read_response(joined, dialect)
    assert answer.id in ("", read_response(bodies[0], dialect).id)
    assert [call.id for call in answer.calls] == shown(last)
    text = "".join(said.text for said in several)
    assert "".join("".join(answer.texts).split()) == "".join(text.split())
    output = sum(s.output_tokens for s in several)
    spent = Usage(sum(s.input_tokens for s in several), output)
    usages = (read_response(body, dialect).usage for body in bodies)
    assert reported_usage(reduce(add_usage, usages)) == spent
    assert reported_usage(answer.usage) == Usage(last.input_tokens, output)


def _without_visible(said: OfflineResponse, number: int) -> OfflineResponse:
    hidden_call = ModelCall(f"h{number}", HIDDEN, "{}")
    return OfflineResponse(
        id=f"b{number}",
        model="m",
        created=1,
        pieces=said.pieces,
        calls=(hidden_call,),
        input_tokens=said.input_tokens,
        output_tokens=said.output_tokens,
    )


@pytest.mark.parametrize(
    ("dialect", "stop"),
    [
        ("openai-chat", "stop"),
        ("anthropic", "end_turn"),
        ("openai-responses", "completed"),
        ("gemini", "STOP"),
    ],
)
def test_no_stop_reason_tells_of_a_hidden_call(dialect: str, stop: str) -> None:
    call = ModelCall("h", HIDDEN, "{}")
    said = OfflineResponse(
        id="a", model="m", created=1, calls=(call,), input_tokens=1, output_tokens=1
    )
    joined = join_responses([compose_response(said, dialect)], dialect, hidden)
    answer = read_response(joined, dialect)
    assert (answer.stop_reason, "".join(answer.texts)) == (stop, "")


def test_responses_body_does_not_list_the_hidden_tool() -> None:
    said = OfflineResponse(
        id="a", model="m", created=1, pieces=("x",), input_tokens=1, output_tokens=1
    )
    body = json.loads(compose_response(said, "openai-responses"))
    body["tools"] = [{"type": "function", "name": HIDDEN}, {"type": "web_search"}]
    joined = json.loads(join_responses([json.dumps(body).encode()], "openai-responses", hidden))
    assert joined["tools"] == [{"type": "web_search"}]


def test_gemini_refusal_does_not_take_back_what_was_said() -> None:
    call = ModelCall("h", HIDDEN, "{}")
    said = OfflineResponse(
        id="a",
        model="m",
        created=1,
        pieces=("Hm.",),
        calls=(call,),
        input_tokens=1,
        output_tokens=1,
    )
    refused = json.dumps({"promptFeedback": {"blockReason": "SAFETY"}}).encode()
    joined = join_responses([compose_response(said, "gemini"), refused], "gemini", hidden)
    assert read_response(joined, "gemini").texts == ("Hm.",)
    assert json.loads(joined)["promptFeedback"] == {"blockReason": "SAFETY"}


def test_chat_content_in_parts_is_joined_as_text() -> None:
    first = {"choices": [{"message": {"content": [{"type": "text", "text": "Hm."}]}}]}
    second = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}
    joined = join_responses(
        [json.dumps(first).encode(), json.dumps(second).encode()], "openai-chat", hidden
    )
    assert read_response(joined, "openai-chat").texts == ("Hm.\n\nYes.",)


@given(junk_values.filter(lambda value: isinstance(value, dict)), dialects)
def test_junk_is_read_as_an_answer_that_says_nothing_we_know(value: Any, dialect: str) -> None:
    body = json.dumps(value).encode()
    assert isinstance(read_response(body, dialect).texts, tuple)
    assert join_responses([body], dialect, lambda _: False) == body
    assert join_responses([body, body], dialect, hidden)


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"\xff", b"[" * 5000])
@every_dialect
def test_what_is_no_answer_is_a_providers_error(body: bytes, dialect: str) -> None:
    with pytest.raises(ProviderError):
        read_response(body, dialect)


@every_dialect
def test_an_error_that_came_with_status_200_is_seen(dialect: str) -> None:
    body = error_body(dialect, 429, "slow down", "too_many")
    assert read_response(body, dialect).error
    relay = Relay(dialect, hidden)
    assert relay.feed(error_event(dialect, 429, "slow down"))
    assert relay.failed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 418, 429, 500, 502, 503, 504, 529])
@every_dialect
def test_errors_say_what_and_which_kind(dialect: str, status: int) -> None:
    value = json.loads(error_body(dialect, status, "No.", "ours"))
    assert value["error"]["message"] == "No."
    assert value["error"]["status" if dialect == "gemini" else "type"]
    [(_, told)] = events(error_event(dialect, status, "No.", "ours"))
    assert told["error"] == value["error"]


def test_usage_is_summed_count_by_count() -> None:
    one = {"n": 1, "in": {"cached": 2}, "tier": "a", "by": [{"modality": "TEXT", "tokenCount": 1}]}
    other = {
        "n": 4,
        "in": {"cached": 8, "more": 1},
        "tier": "b",
        "flag": True,
        "by": [{"modality": "TEXT", "tokenCount": 2}, {"modality": "AUDIO", "tokenCount": 5}],
        "none": None,
    }
    assert add_usage(one, other) == {
        "n": 5,
        "in": {"cached": 10, "more": 1},
        "tier": "b",
        "flag": True,
        "by": [{"modality": "TEXT", "tokenCount": 3}, {"modality": "AUDIO", "tokenCount": 5}],
        "none": None,
    }


@given(junk_values, junk_values)
def test_usage_that_is_junk_is_summed_without_harm(one: Any, other: Any) -> None:
    assert add_usage({"x": one}, {"x": other}).keys() == {"x"}


FIRST: dict[str, dict[str, Any]] = {
    "anthropic": {
        "input_tokens": 10,
        "cache_read_input_tokens": 130_000,
        "cache_creation_input_tokens": 500,
        "cache_creation": {"ephemeral_5m_input_tokens": 500},
        "output_tokens": 40,
        "server_tool_use": {"web_search_requests": 1},
    },
    "openai-chat": {
        "prompt_tokens": 130_510,
        "prompt_tokens_details": {"cached_tokens": 130_000},
        "completion_tokens": 40,
        "completion_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 130_550,
        "cost": 0.5,
    },
    "openai-responses": {
        "input_tokens": 130_510,
        "input_tokens_details": {"cached_tokens": 130_000},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 130_550,
    },
    "gemini": {
        "promptTokenCount": 130_510,
        "cachedContentTokenCount": 130_000,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 130_550,
    },
}
LAST: dict[str, dict[str, Any]] = {
    "anthropic": {
        "input_tokens": 7,
        "cache_read_input_tokens": 131_000,
        "cache_creation_input_tokens": 0,
        "output_tokens": 2,
    },
    "openai-chat": {
        "prompt_tokens": 131_007,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens": 2,
        "total_tokens": 131_009,
        "cost": 0.25,
    },
    "openai-responses": {"input_tokens": 131_007, "output_tokens": 2, "total_tokens": 131_009},
    # What is zero Gemini leaves out.
    "gemini": {
        "promptTokenCount": 131_007,
        "candidatesTokenCount": 2,
        "totalTokenCount": 131_009,
    },
}
TOLD: dict[str, dict[str, Any]] = {
    "anthropic": {
        "input_tokens": 7,
        "cache_read_input_tokens": 131_000,
        "cache_creation_input_tokens": 0,
        "output_tokens": 42,
        "server_tool_use": {"web_search_requests": 1},
    },
    "openai-chat": {
        "prompt_tokens": 131_007,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens": 42,
        "completion_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 131_049,
        "cost": 0.75,
    },
    "openai-responses": {
        "input_tokens": 131_007,
        "output_tokens": 42,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 131_049,
    },
    "gemini": {
        "promptTokenCount": 131_007,
        "candidatesTokenCount": 12,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 131_049,
    },
}


@every_dialect
def test_the_client_is_told_the_context_of_the_last_call_and_all_that_was_generated(
    dialect: str,
) -> None:
    assert context_usage(FIRST[dialect], LAST[dialect]) == TOLD[dialect]
    again = context_usage(TOLD[dialect], LAST[dialect])
    assert reported_usage(again) == Usage(131_007, 44)
    total = next((again[key] for key in ("total_tokens", "totalTokenCount") if key in again), None)
    assert total in (None, 131_051)


@every_dialect
def test_a_last_call_that_reports_nothing_leaves_the_context_of_the_one_before(
    dialect: str,
) -> None:
    assert context_usage(FIRST[dialect], {}) == FIRST[dialect]
