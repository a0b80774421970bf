"""The model opens stored content while it answers: under caps, and always inside its window."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.store.records import Turn as StoredTurn
from holdfast.store.refs import REF
from holdfast.upstream.expansions import Caps
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Answered,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
    turns_of,
    usage_of,
)
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.upstream import Turn, Upstream
from tests.wire.responses.streams import Part, Script

OPENER = "expand_ref"
UNKNOWN = "ref:log:0123456789abcdef"
"""Nothing is stored under it, and no ref of the conversation resembles it."""
TOLD = "No more can be opened"
LINES = 600
_EXAMPLE = re.compile(r'expand_ref\(("[^"]*"), ("[^"]*")\)')


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def opening(n: int, *before: Part, calls: int = 1, **how: str) -> Callable[[Got], Script]:
    """Open the citation, some times in one turn."""

    def turn(got: Got) -> Script:
        found = REF.search(got.texts)
        assert found, "the request holds no citation"
        made = [call("expand_ref", {"ref_id": found[0], **how}, f"c{n}{m}") for m in range(calls)]
        return says(*before, *made)

    return turn


def caps(**limits: int) -> AbstractContextManager[object]:
    """Let one answer of the proxies that start now open no more than so much."""
    return patch("holdfast.surfaces.proxy.service.Caps", partial(Caps, **limits))


def opening_another(n: int) -> Callable[[Got], Script]:
    """Open lines that no other turn opens."""
    return opening(n, lines=f"{n + 1}-{n + 5}")


def asked(proxy: Running, dialect: str, *, stream: bool, **headers: str) -> Answered:
    return ask_model(proxy, dialect, chat(log(LINES)), stream=stream, headers={**KEYS, **headers})


@dataclass(frozen=True)
class Exchange:
    """A client's request about a long log, its response, and the provider's requests."""

    text: str
    """The text of the answer."""
    answered: Answered
    sent: list[Got]
    """The requests of the proxy to the provider."""
    turn: StoredTurn

    @property
    def withdrawn(self) -> list[bool]:
        """Whether each request to the provider forbade the proxy's tool."""
        return [withdrawn(got) for got in self.sent]


def exchanged(
    dialect: str,
    stream: bool,
    *turns: Turn,
    always: Turn | None = None,
    window: int | None = None,
    any_name: bool = False,
    about: dict[str, Any] | None = None,
) -> Exchange:
    """Send one request to a new proxy; the provider refuses none of its requests."""
    limits = {} if window is None else {"request_limit": window}
    with Upstream(*turns, window=window or 200_000) as upstream:
        upstream.always, upstream.any_name = always, any_name
        with running_proxy(limits, upstream.url) as proxy:
            question = about or chat(log(LINES))
            answered = ask_model(proxy, dialect, question, stream=stream)
            assert answered.status == 200
            [turn] = turns_of(proxy, answered)
    assert upstream.refused == []
    said = text_of(dialect, answered, stream=stream)
    return Exchange(said, answered, upstream.requests, turn)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_opens_too_much_is_told_and_then_answers(dialect: str, stream: bool) -> None:
    numbers = iter(range(99))

    def turn(got: Got) -> Script:
        if TOLD in got.texts:
            return says(text("Enough is known."))
        return opening_another(next(numbers))(got)

    with caps(rounds=2):
        made = exchanged(dialect, stream, always=turn)
    assert made.text.endswith("Enough is known.")
    assert len(made.sent) == 4  # one opening, two continuations, and one refusal


def withdrawn(got: Got) -> bool:
    """Whether the request forbids the proxy's tool, by the providers' documentation."""
    choice: Any = got.value.get("tool_choice")
    allowed: Any = choice.get("allowed_tools", choice) if isinstance(choice, dict) else {}
    match got.dialect:
        case "openai-chat":
            return bool(allowed) and allowed["tools"] == [
                {"type": "function", "function": {"name": "read_log"}}
            ]
        case "openai-responses":
            return bool(allowed) and allowed["tools"] == [{"type": "function", "name": "read_log"}]
        case "anthropic":
            return bool(choice == {"type": "none"})
    calling = got.value.get("toolConfig", {}).get("functionCallingConfig")
    return bool(calling == {"mode": "VALIDATED", "allowedFunctionNames": ["read_log"]})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_does_not_listen_loses_the_tool_and_goes_on(
    dialect: str, stream: bool
) -> None:
    numbers = iter(range(99))

    def turn(got: Got) -> Script:
        if withdrawn(got):
            return says(text("I go on without."))
        return opening_another(next(numbers))(got)

    with caps(rounds=2):
        made = exchanged(dialect, stream, always=turn)
    assert made.text == "I go on without."
    # One opening, two continuations, and three refusals.
    assert made.withdrawn == [False] * 5 + [True]
    tools = [got.value["tools"] for got in made.sent]
    assert tools == [tools[0]] * 6, "the prefix changed"


def offers(got: Got) -> bool:
    """Whether the request offers the proxy's tool."""
    return OPENER in json.dumps(got.value.get("tools", []))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_ignores_tool_choice_is_asked_without_the_tool(
    dialect: str, stream: bool
) -> None:
    """Regression: it returned a sentence of ours as the model's answer."""
    numbers = iter(range(99))

    def turn(got: Got) -> Script:
        if offers(got):
            return opening_another(next(numbers))(got)
        return says(text("It went well."))

    with caps(rounds=2):
        made = exchanged(dialect, stream, always=turn)
    assert made.text == "It went well."
    first, *between, last = made.sent
    assert len(between) == 5  # two continuations, three refusals, and then the tool is forbidden
    assert all(map(offers, between))
    assert last.texts == first.texts, "what was opened is still there"
    assert not offers(last)
    assert [edit.action for edit in made.turn.edits][-3:] == ["refuse", "withhold", "resend"]
    assert made.turn.usage.expansions == 2
    assert made.turn.usage.input == sum(got.tokens for got in made.sent)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_empty_answer_of_a_model_that_stays_silent_is_given_as_it_is(
    dialect: str, stream: bool
) -> None:
    made = exchanged(dialect, stream, opening_another(1), *[says(text(""))] * 3)
    assert made.text == ""
    assert [offers(got) for got in made.sent] == [True, True, True, False]
    assert [edit.action for edit in made.turn.edits][-1] == "resend"


@pytest.mark.parametrize("name", ["Expand_Ref", "functions.expand_ref", "default_api:expandRef"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_names_our_tool_otherwise_is_answered(
    dialect: str, stream: bool, name: str
) -> None:
    """The client got these calls, and knows no such tool."""

    def turn(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref
        return says(call(name, {"ref": ref[0], "find": "lines 1-5"}, "c1"))

    made = exchanged(dialect, stream, turn, says(text("Read.")), any_name=True)
    assert made.text == "Read."
    assert name.encode() not in made.answered.body
    assert "step 0-1" in made.sent[1].texts
    assert name not in made.sent[1].body.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_repeats_its_call_is_told_once_and_then_loses_the_tool(
    dialect: str, stream: bool
) -> None:
    numbers = iter(range(99))

    def turn(got: Got) -> Script:
        if withdrawn(got):
            return says(text("I go on without."))
        return opening(next(numbers), lines="1-5")(got)

    made = exchanged(dialect, stream, always=turn)
    assert made.text == "I go on without."
    assert made.withdrawn == [False] * 2 + [True]
    assert "Already shown above" in made.sent[2].texts
    assert "Already shown above" not in made.sent[1].texts
    assert made.turn.usage.expansions == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_copies_the_example_is_asked_again_where_the_citation_answers(
    dialect: str, stream: bool
) -> None:
    question = 'Which line says "failed to open permission denied"?'
    lines = [f"12:01:{n % 60:02d} INFO worker-{n}: handled request {n}" for n in range(LINES)]
    lines[77] = "12:01:17 INFO worker-0: failed to open /srv/77.db: permission denied"

    def turn(got: Got) -> Script:
        if withdrawn(got):
            return says(text("Line 78."))
        example = _EXAMPLE.search(got.texts)
        assert example, "the request holds no example"
        made = {"ref": json.loads(example[1]), "find": json.loads(example[2])}
        return says(call("expand_ref", made, "c1"))

    about = chat("\n".join(lines), question=question)
    made = exchanged(dialect, stream, always=turn, about=about)
    assert made.text == "Line 78."
    assert made.withdrawn == [False, True]
    assert made.sent[1].texts == made.sent[0].texts
    assert made.turn.usage.expansions == 0


def test_a_model_that_copies_the_example_gets_a_hidden_answer_and_loses_the_tool(
    stream: bool,
) -> None:
    question = "When does the lighthouse at the harbour close?"
    paragraphs = [f"Note {n}. " + f"Nothing happened on day {n}. " * 40 for n in range(LINES)]
    paragraphs[301] = (
        "The harbour is old. " + "It is grey there. " * 60 + "The lighthouse closes at 4."
    )

    def turn(got: Got) -> Script:
        if withdrawn(got):
            return says(text("At four."))
        example = _EXAMPLE.search(got.texts)
        assert example, "the request holds no example"
        made = {"ref": json.loads(example[1]), "find": json.loads(example[2])}
        return says(call("expand_ref", made, "c1"))

    with Upstream() as upstream:
        upstream.always = turn
        with running_proxy({}, upstream.url) as proxy:
            asked_about = chat("\n\n".join(paragraphs), question=question)
            answered = ask_model(proxy, "openai-chat", asked_about, stream=stream)
            assert text_of("openai-chat", answered, stream=stream) == "At four."
        assert upstream.refused == []
        assert [withdrawn(got) for got in upstream.requests] == [False, True]
        assert "answer to the question" in upstream.requests[1].texts


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_agent_that_copies_the_example_keeps_its_own_tools(dialect: str, stream: bool) -> None:
    question = "When does the lighthouse at the harbour close?"
    paragraphs = [f"Note {n}. " + f"Nothing happened on day {n}. " * 40 for n in range(LINES)]
    paragraphs[301] = (
        "The harbour is old. " + "It is grey there. " * 60 + "The lighthouse closes at 4."
    )

    def copies(got: Got) -> Script:
        example = _EXAMPLE.search(got.texts)
        assert example, "the request holds no example"
        made = {"ref": json.loads(example[1]), "find": json.loads(example[2])}
        return says(call("expand_ref", made, "c1"))

    next_step = says(call("read_log", {"path": "tides.log"}, "c2"))
    about = chat("\n\n".join(paragraphs), question=question)
    made = exchanged(dialect, stream, copies, next_step, about=about)
    assert b"tides.log" in made.answered.body
    assert "answer to the question" in made.sent[1].texts
    assert made.sent[1].value.get("tool_choice") not in ("none", {"type": "none"})


@pytest.mark.parametrize("opens", [1, 3])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_opens_and_says_nothing_is_asked_again_without_the_tool(
    dialect: str, stream: bool, opens: int
) -> None:
    turns = [opening_another(n) for n in range(opens)]
    made = exchanged(dialect, stream, *turns, says(text("")), says(text("The answer.")))
    assert made.text == "The answer."
    assert made.withdrawn == [False] * (opens + 1) + [True]
    assert made.sent[-1].texts == made.sent[0].texts, "what was opened is still there"
    assert made.turn.usage.expansions == opens
    assert made.turn.usage.input == sum(got.tokens for got in made.sent)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_said_something_before_it_opened_is_not_asked_again(
    dialect: str, stream: bool
) -> None:
    first = opening(1, text("It is line 3."), lines="1-5")
    made = exchanged(dialect, stream, first, says(text("")))
    assert made.text == "It is line 3."
    assert len(made.sent) == 2


def goes_on(dialect: str, answer: Answered, *, stream: bool) -> bytes:
    """The client's next request, with the text that it was answered and a new question."""
    body = chat(log(LINES))
    said = {"role": "assistant", "content": text_of(dialect, answer, stream=stream)}
    body["messages"] += [said, {"role": "user", "content": "And then?"}]
    return request_in(dialect, body, stream=stream)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_empty_last_turn_is_not_sent_back(dialect: str, stream: bool) -> None:
    """The history with it was invalid, so that all of it was read anew and earlier edits lost."""
    first = opening(1, text("It is line 3."), lines="1-5")
    with Upstream(first, says(), says(text("Nothing."))) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            url = proxy.url + path_of(dialect, stream=stream)
            answered = asked(proxy, dialect, stream=stream)
            later = ask(url, goes_on(dialect, answered, stream=stream), KEYS)
            assert text_of(dialect, later, stream=stream) == "Nothing."
            written = turns_of(proxy, later)[-1]
        assert upstream.refused == []
        _, opened, later_request = upstream.requests
        assert later_request.texts.startswith(opened.texts)
    assert "repair" not in {edit.action for edit in written.edits}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_with_endless_arguments_does_not_fill_the_next_request(
    dialect: str, stream: bool
) -> None:
    """The call that ended the answer was brought back, and the session was lost."""
    window = 4_000
    endless = opening(1, text("Look."), find="word " * 20_000)
    with Upstream(endless, says(text("Read.")), window=window) as upstream:
        with running_proxy({"request_limit": window}, upstream.url) as proxy:
            url = proxy.url + path_of(dialect, stream=stream)
            answered = asked(proxy, dialect, stream=stream)
            assert text_of(dialect, answered, stream=stream) == "Look."
            later = ask(url, goes_on(dialect, answered, stream=stream), KEYS)
            assert text_of(dialect, later, stream=stream) == "Read."
        assert upstream.refused == []


@pytest.mark.parametrize("said", ["", "Look. "])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_where_the_upstream_refuses_to_go_on_the_first_request_goes_out_again(
    dialect: str, stream: bool, said: str
) -> None:
    """The client got an error for a request that it did not write."""
    first = opening(1, *([text(said)] if said else []), lines="1-5")
    answer = says(text("The answer."))
    made = exchanged(dialect, stream, first, faults.status(400), answer)
    assert made.text.split() == [*said.split(), "The", "answer."]
    assert made.withdrawn == [False, False, True]
    assert made.sent[2].texts == made.sent[0].texts
    assert [edit.action for edit in made.turn.edits][-1] == "resend"


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_first_request_that_is_refused_is_not_sent_again(stream: bool, status: int) -> None:
    with Upstream(faults.status(status)) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            assert asked(proxy, "openai-chat", stream=stream).status == status
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_arguments_that_are_no_json_are_not_sent_back(dialect: str, stream: bool) -> None:
    """Services that write the history into a template refuse them."""

    def cut(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref
        return says(Part("call", ('{"ref": "' + ref[0] + '", "fin',), "c1", OPENER))

    made = exchanged(dialect, stream, cut, says(text("Read.")))
    assert made.text == "Read."
    last = calls_of(made.sent[1])[-1]
    call_back = last if dialect == "openai-responses" else last["function"]
    assert isinstance(json.loads(call_back["arguments"]), dict)


def calls_of(got: Got) -> list[Any]:
    if got.dialect == "openai-responses":
        return [item for item in got.value["input"] if item.get("type") == "function_call"]
    messages = got.value["messages"]
    return [made for message in messages for made in message.get("tool_calls") or ()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_calls_wrongly_again_and_again_loses_the_tool(
    dialect: str, stream: bool
) -> None:
    """Eight such calls cost twelve requests, and were shown as eight openings."""
    numbers = iter(range(99))

    def turn(got: Got) -> Script:
        if withdrawn(got):
            return says(text("I go on without."))
        n = next(numbers)
        return says(call("expand_ref", {"ref": UNKNOWN, "find": f"lines {n}"}, f"call_{n}"))

    made = exchanged(dialect, stream, always=turn)
    assert made.text == "I go on without."
    assert made.withdrawn == [False] * 3 + [True]
    shown = REF.search(made.sent[0].texts)
    assert shown
    assert f'Call expand_ref("{shown[0]}").' in made.sent[1].texts
    assert made.turn.usage.expansions == 0


def test_one_right_call_gives_a_model_all_its_tries_back(stream: bool) -> None:
    wrong = [says(call("expand_ref", {"ref": UNKNOWN}, f"call_{n}")) for n in range(4)]
    right, last = opening(1, lines="1-5"), says(text("Read."))
    made = exchanged("anthropic", stream, *wrong[:2], right, *wrong[2:], last)
    assert made.text == "Read."
    assert not any(made.withdrawn)
    assert made.turn.usage.expansions == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_client_is_told_the_last_context_and_in_headers_the_sum(
    dialect: str, stream: bool
) -> None:
    turns = [opening(n, lines="1-5") for n in range(2)]
    made = exchanged(dialect, stream, *turns, says(text("Read.")))
    shown = [got.tokens for got in made.sent]
    assert usage_of(dialect, made.answered, stream=stream)[0] == shown[-1]
    assert made.turn.usage.input == sum(shown)
    if not stream:
        headers = made.answered.headers
        assert headers["x-holdfast-calls"] == "3"
        assert headers["x-holdfast-input-tokens"] == str(sum(shown))
        # the same figure everywhere: opened tokens are not saved
        assert headers["x-holdfast-saved"] == str(made.turn.usage.saved)


def test_usage_that_the_client_did_not_ask_for_is_asked_for_in_every_call() -> None:
    body = json.loads(request_in("openai-chat", chat(log(LINES)), stream=True))
    del body["stream_options"]
    with Upstream(opening(1, lines="1-5"), says(text("Read."))) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            answered = ask_model(proxy, "openai-chat", body)
            assert b"prompt_tokens" not in answered.body
            [turn] = turns_of(proxy, answered)
            assert turn.usage.input == sum(got.tokens for got in upstream.requests)
        options = [got.value["stream_options"] for got in upstream.requests]
        assert options == [{"include_usage": True}] * 2


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("said", [0, 500, 900])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_opened_fits_behind_what_was_said(
    dialect: str, stream: bool, said: int, calls: int
) -> None:
    """The model's own text is in the next request, and needs room too."""
    window = 2_500
    words = text("Let me think. " + "word " * said)
    made = exchanged(
        dialect,
        stream,
        opening(1, words, calls=calls, lines="1-600"),
        opening(2, calls=calls, lines="1-600"),
        says(text("That is all.")),
        window=window,
    )
    assert made.text.endswith("That is all.")
    assert any("step 0-1" in got.texts for got in made.sent[1:]) or said == 900


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_any_room_to_go_on_the_answer_ends_and_is_not_empty(
    dialect: str, stream: bool
) -> None:
    window = 2_500
    words = text("word " * 2_400)
    made = exchanged(dialect, stream, opening(1, words, lines="1-600"), window=window)
    assert made.text.startswith("word word")
    assert len(made.sent) == 1


def test_two_calls_of_one_turn_share_what_may_be_opened(stream: bool) -> None:
    def both(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref
        lines = ("1-600", "1-599")
        return says(*(call("expand_ref", {"ref_id": ref[0], "lines": n}, n) for n in lines))

    with caps(tokens=2_000):
        made = exchanged("openai-chat", stream, both, says(text("Read.")))
    given: list[Any] = made.sent[1].value["messages"][-2:]
    assert [one["tool_call_id"] for one in given] == ["1-600", "1-599"]
    assert all("step 0-1" in one["content"] for one in given)


def test_calls_without_ids_are_told_apart_by_their_order(stream: bool) -> None:
    """Gemini had none before 3: the client's result is between ours, in the order of calls."""

    def both(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref
        ours = [call("expand_ref", {"ref_id": ref[0], "lines": n}, "") for n in ("1-5", "6-9")]
        return says(text("Let me look."), ours[0], call("read_log", {"path": "q"}, ""), ours[1])

    body = json.loads(request_in("gemini", chat(log(LINES))))
    for part in (part for content in body["contents"] for part in content["parts"]):
        for kind in part.keys() & {"functionCall", "functionResponse"}:
            part[kind].pop("id", None)
    with Upstream(both, says(text("Done."))) as upstream:
        with running_proxy({}, upstream.url) as proxy:
            url = proxy.url + path_of("gemini", stream=stream)
            answered = ask(url, body, KEYS)
            values = answered.events if stream else [answered.json]
            said = [part for v in values for part in v["candidates"][0]["content"]["parts"]]
            result = {"name": "read_log", "response": {"output": "q is well"}}
            body["contents"] += [
                {"role": "model", "parts": [part for part in said if part]},
                {"role": "user", "parts": [{"functionResponse": result}]},
            ]
            last = ask(url, body, KEYS)
            assert text_of("gemini", last, stream=stream) == "Done."
        assert upstream.refused == []
        given = upstream.requests[1].value["contents"][-1]["parts"]
        first, theirs, second = [str(part["functionResponse"]["response"]) for part in given]
        assert "step 0-1 " in first
        assert "q is well" in theirs
        assert "step 0-6 " in second


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_service_that_numbers_calls_anew_is_answered_all_the_same(
    dialect: str, stream: bool
) -> None:
    """The client's own call has the id `call_0` too, and two calls of one turn share theirs."""

    def turn(got: Got) -> Script:
        ref = REF.search(got.texts)
        assert ref
        asked = [call("expand_ref", {"ref_id": ref[0], "lines": n}, "call_0") for n in ("1-5", "9")]
        return says(*(asked if dialect != "openai-chat" else asked[:1]))

    made = exchanged(dialect, stream, turn, turn, says(text("Done.")))
    assert made.text == "Done."
    assert "step 0-1 " in made.sent[2].texts
