"""Requests with hidden calls in them: valid, whole, and the same bytes wherever nothing changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import EditError
from holdfast.wire import read, validate
from holdfast.wire import write as wire_write
from holdfast.wire.responses import (
    HiddenTurn,
    Hop,
    ModelCall,
    Relay,
    continuation,
    rejoin,
    split,
)
from holdfast.wire.responses.turns import FORMER_NOTE
from tests.wire.responses.streams import (
    DIALECTS,
    HIDDEN,
    Part,
    Script,
    as_shown,
    hidden,
    scripts,
    write,
)
from tests.wire.responses.test_relay import EXPAND, HELLO, LOOK_UP, THOUGHT, opening

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
dialects = st.sampled_from(DIALECTS)

MODELS = {
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}


def request(dialect: str, *more: Any) -> bytes:
    """A client's request, spelled with white space of its own; `more` are messages behind."""
    if dialect == "gemini":
        first: Any = {"role": "user", "parts": [{"text": "Hi  there"}]}
        body: dict[str, Any] = {"contents": [first, *more]}
    elif dialect == "openai-responses":
        body = {"model": "gpt-5", "input": [{"role": "user", "content": "Hi  there"}, *more]}
    else:
        body = {
            "model": MODELS[dialect],
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "Hi  there"}, *more],
        }
    return json.dumps(body, indent=1).encode()


def answered(script: Script, dialect: str) -> Relay:
    relay = Relay(dialect, hidden)
    for event in write(script, dialect):
        relay.feed(event)
    relay.finish()
    return relay


def result(call_id: str, name: str, text: str, dialect: str) -> list[Any]:
    """What a client sends back for a call."""
    if dialect == "openai-chat":
        return [{"role": "tool", "tool_call_id": call_id, "content": text}]
    if dialect == "openai-responses":
        return [{"type": "function_call_output", "call_id": call_id, "output": text}]
    if dialect == "anthropic":
        part = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return [{"role": "user", "content": [part]}]
    response = {"functionResponse": {"id": call_id, "name": name, "response": {"output": text}}}
    return [{"role": "user", "parts": [response]}]


def together(messages: list[Any], dialect: str) -> list[Any]:
    """Results of one turn in one message, where the dialect wants that."""
    key = {"anthropic": "content", "gemini": "parts"}.get(dialect)
    if key is None or not messages:
        return messages
    return [{"role": "user", key: [part for message in messages for part in message[key]]}]


def sendable(turn: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """A turn as it can go back: reasoning must have led to something."""
    while turn and json.loads(turn[-1]).get("type") == "reasoning":
        turn = turn[:-1]
    return turn


def rejoined(body: bytes, dialect: str, kept: list[HiddenTurn]) -> bytes:
    """A client's request as the provider gets it."""
    return wire_write(rejoin(read(body, dialect), kept, hidden))


def continued(
    body: bytes, dialect: str, turn: tuple[bytes, ...], results: Sequence[tuple[ModelCall, str]]
) -> bytes:
    """The request that goes on from an answer."""
    return wire_write(continuation(read(body, dialect), turn, results))


def results_of(relay: Relay) -> tuple[tuple[ModelCall, str], ...]:
    return tuple((call, f"opened {call.id}") for call in relay.hidden_calls)


def next_request(script: Script, dialect: str, relay: Relay) -> bytes:
    """The client's next request: what it saw of the answer, its results, a question."""
    seen = [json.loads(raw) for raw in split(relay.assistant_turn, dialect, hidden)]
    given = [
        message
        for call in as_shown(script).calls
        for message in result(call.id, call.name, "sunny", dialect)
    ]
    return request(dialect, *seen, *together(given, dialect))


@given(scripts(names=(HIDDEN,), must=(HIDDEN,)), dialects)
def test_continuation_is_valid_and_keeps_all_bytes_before(script: Script, dialect: str) -> None:
    relay = answered(script, dialect)
    body = request(dialect)
    longer = continued(body, dialect, relay.assistant_turn, results_of(relay))
    assert validate(longer, dialect) == []
    kept = [message.raw for message in read(body, dialect).messages]
    now = read(longer, dialect).messages
    assert [message.raw for message in now[: len(kept)]] == kept
    turn = sendable(relay.assistant_turn)
    assert tuple(message.raw for message in now[len(kept) :][: len(turn)]) == turn
    texts = [answer.text for message in now for answer in message.results]
    assert texts == [f"opened {call.id}" for call in relay.hidden_calls]


@every_dialect
def test_continuation_without_a_result_is_refused(dialect: str) -> None:
    relay = answered(Script((EXPAND,)), dialect)
    with pytest.raises(EditError):
        continued(request(dialect), dialect, relay.assistant_turn, [])


@given(scripts(names=("look_up", HIDDEN), must=("look_up", HIDDEN)), dialects)
def test_rejoined_request_is_valid_and_has_every_call_with_its_result(
    script: Script, dialect: str
) -> None:
    relay = answered(script, dialect)
    body = next_request(script, dialect, relay)
    kept = HiddenTurn((Hop(relay.assistant_turn, results_of(relay)),), index=1)
    whole = rejoined(body, dialect, [kept])
    assert validate(whole, dialect) == []
    messages = read(whole, dialect).messages
    made = [call.id for message in messages for call in message.calls]
    assert made == [call.id for call in script.calls]
    given_back = {r.call_id: r.text for message in messages for r in message.results}
    assert given_back == {
        call.id: f"opened {call.id}" if call.name == HIDDEN else "sunny" for call in script.calls
    }
    turn = sendable(relay.assistant_turn)
    assert tuple(m.raw for m in messages[1 : 1 + len(turn)]) == turn
    assert messages[0].raw == read(body, dialect).messages[0].raw


longer_chains = st.tuples(
    st.lists(scripts(names=(HIDDEN,)), min_size=1, max_size=2), scripts(prefix="l")
).map(lambda pair: [*(opening(n, script) for n, script in enumerate(pair[0])), pair[1]])


@given(longer_chains, dialects)
def test_answers_of_several_hops_come_back_as_the_provider_wrote_them(
    chain: list[Script], dialect: str
) -> None:
    hops = []
    shown: list[Any] = []
    for script in chain:
        relay = answered(script, dialect)
        hops.append(Hop(relay.assistant_turn, results_of(relay)))
        shown.extend(json.loads(raw) for raw in split(relay.assistant_turn, dialect, hidden))
    # Where the client saw no words of the model, it saw the proxy's.
    if not any(as_shown(script).calls for script in chain) and not _words(chain):
        shown.extend(note(dialect))
    calls = as_shown(chain[-1]).calls
    given_back = [m for c in calls for m in result(c.id, c.name, "sunny", dialect)]
    question = {"role": "user", "content": "And?"}
    if dialect == "gemini":
        question = {"role": "user", "parts": [{"text": "And?"}]}  # type: ignore[dict-item]
    body = request(dialect, *joined(shown, dialect), *together(given_back, dialect), question)
    whole = rejoined(body, dialect, [HiddenTurn(tuple(hops), index=1)])
    messages = read(whole, dialect).messages
    spans = [message.raw for message in messages]
    for turn in [sendable(hop.turn) for hop in hops]:
        place = spans.index(turn[0]) if turn else 0
        assert tuple(spans[place : place + len(turn)]) == turn
    made = [call.id for message in messages for call in message.calls]
    assert made == [call.id for script in chain for call in script.calls]
    assert rejoined(body, dialect, []) == body
    # What the provider was sent on the way stays what it was, so that its cache is of use.
    sent = request(dialect)
    for hop in hops[:-1]:
        sent = continued(sent, dialect, hop.turn, hop.results)
        before = [message.raw for message in read(sent, dialect).messages]
        assert spans[: len(before)] == before


def _words(chain: list[Script]) -> str:
    return "".join(text for script in chain for text in script.texts).strip()


def note(dialect: str) -> list[Any]:
    """Words of an earlier version in place of an answer, as the client sends them back."""
    if dialect == "gemini":
        return [{"role": "model", "parts": [{"text": FORMER_NOTE}]}]
    if dialect == "anthropic":
        return [{"role": "assistant", "content": [{"type": "text", "text": FORMER_NOTE}]}]
    return [{"role": "assistant", "content": FORMER_NOTE}]


def joined(shown: list[Any], dialect: str) -> list[Any]:
    """Several messages as the one that a client makes of a joined answer."""
    if dialect == "openai-responses":
        return shown
    if dialect == "openai-chat":
        words = "\n\n".join(filter(None, (message["content"] for message in shown)))
        calls = [call for message in shown for call in message.get("tool_calls", ())]
        message = {"role": "assistant", "content": words}
        return [{**message, "tool_calls": calls} if calls else message]
    key = "content" if dialect == "anthropic" else "parts"
    return [{**shown[0], key: [part for message in shown for part in message[key]]}]


@every_dialect
def test_an_answer_that_the_client_changed_is_left_as_it_is(dialect: str) -> None:
    relay = answered(Script((HELLO, EXPAND, LOOK_UP)), dialect)
    kept = HiddenTurn((Hop(relay.assistant_turn, results_of(relay)),), index=1)
    other = answered(Script((Part("text", ("Something else.",)),)), dialect)
    body = request(dialect, *(json.loads(raw) for raw in other.assistant_turn))
    assert rejoined(body, dialect, [kept]) == body


@every_dialect
def test_of_equal_answers_the_nearest_is_the_one(dialect: str) -> None:
    relay = answered(Script((HELLO, EXPAND)), dialect)
    again = answered(Script((Part("text", ("!",)),)), dialect)
    kept = HiddenTurn(
        (Hop(relay.assistant_turn, results_of(relay)), Hop(again.assistant_turn)), index=3
    )
    seen = joined(
        [
            json.loads(r)
            for r in split(relay.assistant_turn, dialect, hidden) + again.assistant_turn
        ],
        dialect,
    )
    question = json.loads(request(dialect))
    [asked] = next(question[k] for k in ("messages", "input", "contents") if k in question)
    body = request(dialect, *seen, asked, *seen, asked)
    before = [message.raw for message in read(body, dialect).messages]
    first = len(seen)
    after = [message.raw for message in read(rejoined(body, dialect, [kept]), dialect).messages]
    assert after[: first + 2] == before[: first + 2]
    assert len(after) > len(before)


@every_dialect
def test_thinking_is_kept_where_the_client_dropped_it(dialect: str) -> None:
    relay = answered(Script((THOUGHT, EXPAND, LOOK_UP)), dialect)
    kept = HiddenTurn((Hop(relay.assistant_turn, results_of(relay)),), index=1)
    seen = answered(Script((LOOK_UP,)), dialect).assistant_turn
    given_back = result("call_shown", "look_up", "sunny", dialect)
    body = request(dialect, *(json.loads(raw) for raw in seen), *given_back)
    whole = read(rejoined(body, dialect, [kept]), dialect)
    assert validate(whole) == []
    assert tuple(m.raw for m in whole.messages[1:][: len(relay.assistant_turn)]) == (
        relay.assistant_turn
    )


@every_dialect
def test_a_request_with_nothing_to_bring_back_is_the_same_object(dialect: str) -> None:
    conversation = read(request(dialect), dialect)
    assert rejoin(conversation, [HiddenTurn((Hop(()),))], hidden) is conversation


def test_an_answer_of_which_the_client_saw_nothing_is_not_taken_for_an_empty_one() -> None:
    relay = answered(Script((EXPAND,)), "openai-chat")
    kept = HiddenTurn((Hop(relay.assistant_turn, results_of(relay)),), index=1)
    body = request("openai-chat", {"role": "assistant", "content": ""})
    assert rejoined(body, "openai-chat", [kept]) == body


@every_dialect
def test_an_answer_of_which_the_client_saw_only_a_note_comes_back(dialect: str) -> None:
    relay = answered(Script((THOUGHT, EXPAND)), dialect)
    hop = Hop(relay.assistant_turn, results_of(relay))
    seen = [json.loads(raw) for raw in split(relay.assistant_turn, dialect, hidden)]
    asked = json.loads(request(dialect))
    [question] = next(asked[key] for key in ("messages", "input", "contents") if key in asked)
    body = request(dialect, *joined([*seen, *note(dialect)], dialect), question)
    whole = rejoined(body, dialect, [HiddenTurn((hop,), index=1)])
    assert validate(whole, dialect) == []
    assert FORMER_NOTE.encode() not in whole
    assert b"opened call_hidden" in whole


# --- what only one dialect has -----------------------------------------------------------------


def test_anthropic_results_stand_before_the_users_words() -> None:
    relay = answered(Script((EXPAND, LOOK_UP)), "anthropic")
    seen = [json.loads(raw) for raw in split(relay.assistant_turn, "anthropic", hidden)]
    [message] = result("call_shown", "look_up", "sunny", "anthropic")
    message["content"].append({"type": "text", "text": "and now?"})
    kept = HiddenTurn((Hop(relay.assistant_turn, results_of(relay)),))
    whole = rejoined(request("anthropic", *seen, message), "anthropic", [kept])
    assert validate(whole) == []
    last = read(whole, "anthropic").messages[-1]
    assert [type(block).__name__ for block in last.blocks] == ["ToolResult", "ToolResult", "Text"]


def test_gemini_responses_keep_the_order_of_calls_without_ids() -> None:
    first = {"functionCall": {"name": "look_up", "args": {"n": 1}}, "thoughtSignature": "s"}
    secret = {"functionCall": {"name": HIDDEN, "args": {}}}
    second = {"functionCall": {"name": "look_up", "args": {"n": 2}}}
    turn = (json.dumps({"role": "model", "parts": [first, secret, second]}).encode(),)
    hop = Hop(turn, ((ModelCall("", HIDDEN, "{}"), "opened"),))
    responses = [
        {"functionResponse": {"name": "look_up", "response": {"output": f"r{n}"}}} for n in (1, 2)
    ]
    seen = [json.loads(raw) for raw in split(turn, "gemini", hidden)]
    body = request("gemini", *seen, {"role": "user", "parts": responses})
    whole = rejoined(body, "gemini", [HiddenTurn((hop,))])
    assert validate(whole, "gemini") == []
    last = read(whole, "gemini").messages[-1]
    assert [answer.text for answer in last.results] == ["r1", "opened", "r2"]


def test_responses_chain_goes_on_from_the_last_hop() -> None:
    kept = HiddenTurn(
        (Hop((), ((ModelCall("h", HIDDEN, "{}"), "opened"),)),), seen_id="resp_1", last_id="resp_2"
    )
    outputs = result("v", "look_up", "sunny", "openai-responses")
    body = {"model": "gpt-5", "previous_response_id": "resp_1", "input": outputs}
    whole = json.loads(rejoined(json.dumps(body).encode(), "openai-responses", [kept]))
    assert whole["previous_response_id"] == "resp_2"
    assert [item["call_id"] for item in whole["input"]] == ["h", "v"]
    other = json.dumps({**body, "previous_response_id": "resp_9"}).encode()
    assert rejoined(other, "openai-responses", [kept]) == other


def test_responses_continuation_in_a_kept_conversation_sends_only_results() -> None:
    relay = answered(Script((HELLO, EXPAND)), "openai-responses")
    body = {"model": "gpt-5", "conversation": "conv_1", "input": "Hi"}
    longer = continued(
        json.dumps(body).encode(), "openai-responses", relay.assistant_turn, results_of(relay)
    )
    assert [item["type"] for item in json.loads(longer)["input"]] == ["function_call_output"]


def test_responses_continuation_leaves_out_reasoning_that_nobody_kept() -> None:
    relay = answered(Script((THOUGHT, EXPAND)), "openai-responses")
    lost = json.loads(relay.assistant_turn[0])
    lost.pop("encrypted_content")
    turn = (json.dumps(lost).encode(), *relay.assistant_turn[1:])
    body = {"model": "gpt-5", "store": False, "input": "Hi"}
    longer = continued(json.dumps(body).encode(), "openai-responses", turn, results_of(relay))
    assert validate(longer, "openai-responses") == []
    kinds = [item.get("type") for item in json.loads(longer)["input"]]
    assert kinds == ["message", "function_call", "function_call_output"]
