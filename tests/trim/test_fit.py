"""Promises: a fitted request is within its limit, valid, keeps its anchors, and stays put."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import count, read, validate, write
from holdfast.errors import (
    AnchorPreservationError,
    BudgetExceededError,
    ContextOptimizationError,
    HoldfastError,
    SettingsError,
)
from holdfast.fitting import FitState, fit, unfold
from holdfast.tokens import TokenCount, register_counter
from holdfast.trim import STRATEGIES, AnchorPreservationManager
from holdfast.wire import Conversation, Message, Text
from tests.wire.bodies import WRITERS, Call, Script, Turn, words

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}
MANAGER = AnchorPreservationManager()


@st.composite
def long_scripts(draw: st.DrawFn) -> Script:
    """Conversations with something to trim: long results, many turns, a rule here and there."""
    turns = []
    kinds = draw(
        st.lists(st.sampled_from(["user", "assistant", "tools", "tools"]), min_size=3, max_size=14)
    )
    for number, kind in enumerate(["user", *kinds, "user"]):
        size = draw(st.sampled_from([1, 5, 40, 200]))
        calls = []
        if kind == "tools":
            for n in range(draw(st.integers(1, 2))):
                result = (draw(words) + " ") * size * 3
                failed = draw(st.booleans()) and size == 1
                calls.append(Call(f"c{number}_{n}", "look", {"path": "x"}, result.strip(), failed))
        rule = draw(st.sampled_from(["", "", "", "Never touch the tests. "]))
        text = rule + ((draw(words) + " ") * size).strip()
        turns.append(Turn(kind, text, calls, draw(st.booleans()), draw(st.booleans()), {}))
    return Script(draw(words), ["look"], turns, {})


def tokens_of(body: bytes, dialect: str) -> int:
    return count(read(body, dialect), model=MODELS[dialect]).tokens


def anchors_kept(before: Conversation, after: Conversation) -> bool:
    """Every anchor is there; those with results at least with their calls and shortened results."""
    texts = [message.raw for message in after.messages]
    calls = {call.id for message in after.messages for call in message.calls}
    for anchor in MANAGER.identify(before.messages):
        message = before.messages[anchor.index]
        if message.results:
            if not all(result.call_id in calls or not result.call_id for result in message.results):
                return False
        elif message.raw not in texts and not (
            anchor.type in ("first_user_message", "latest_user_message")
            and any(is_cut_of(message, other) for other in after.messages)
        ):
            return False
    return True


MARK_OF_CUT = re.compile(r"\n?\[… \d+ characters cut[^\n]* …\]")


def is_cut_of(whole: Message, shown: Message) -> bool:
    """Whether a long text has lost its middle, and kept its beginning."""
    words = spoken(whole)
    head, *rest = MARK_OF_CUT.split(spoken(shown), maxsplit=1)
    return bool(rest) and len(words) > 1_000 and len(head) > 300 and words.startswith(head)


def spoken(message: Message) -> str:
    return " ".join(block.text for block in message.blocks if isinstance(block, Text))


def least(conversation: Conversation, counted: TokenCount) -> float:
    """What cannot be trimmed away: the frame, and the exchanges that hold anchors."""
    kept = {a.index for a in MANAGER.identify(conversation.messages)}
    around = counted.tokens - sum(counted.message_tokens)
    return around + sum(
        sum(counted.message_tokens[exchange.start : exchange.stop])
        for exchange in conversation.exchanges
        if kept & set(range(exchange.start, exchange.stop))
    )


drawn = given(
    st.sampled_from(DIALECTS), long_scripts(), st.sampled_from(["auto", *STRATEGIES]), st.data()
)


@settings(max_examples=75)
@drawn
def test_a_fitted_request_is_within_its_limit_valid_and_keeps_its_anchors(
    dialect: str, script: Any, strategy: str, data: st.DataObject
) -> None:
    check_fit(dialect, script, strategy, data)


@pytest.mark.campaign
@settings(max_examples=100_000)
@drawn
def test_so_are_a_hundred_thousand(
    dialect: str, script: Any, strategy: str, data: st.DataObject
) -> None:
    check_fit(dialect, script, strategy, data)


def check_fit(dialect: str, script: Any, strategy: str, data: st.DataObject) -> None:
    body = WRITERS[dialect](script)
    source = read(body, dialect)
    counted = count(source, model=MODELS[dialect])
    total = counted.tokens
    limit = data.draw(st.integers(1, total + 50))
    try:
        fitted = fit(body, dialect=dialect, model=MODELS[dialect], limit=limit, strategy=strategy)
    except (AnchorPreservationError, BudgetExceededError):
        assert limit < least(source, counted) + 10  # only the messages to keep may be too large
        return
    assert tokens_of(fitted.body, dialect) == fitted.tokens <= limit
    assert validate(fitted.body, dialect, MODELS[dialect]) == []
    after = read(fitted.body, dialect)
    assert anchors_kept(source, after)
    if total <= limit:
        assert fitted.body == write(source)
        assert fitted.edits == ()
    # Order is kept, and every sent message lists the ones that it replaces.
    ends = [place for origin in fitted.state.origins for place in origin]
    assert ends == sorted(ends)
    for message, (start, stop) in zip(after.messages, fitted.state.origins, strict=True):
        if stop - start == 1 and message.raw != source.messages[start].raw:
            changed = source.messages[start]
            assert changed.results or b"Folded" in message.raw or is_cut_of(changed, message)


turns = given(st.sampled_from(DIALECTS), long_scripts(), st.data())


@settings(max_examples=60)
@turns
def test_turn_by_turn_what_was_sent_stays_byte_identical_between_folds(
    dialect: str, script: Any, data: st.DataObject
) -> None:
    check_turns(dialect, script, data)


@pytest.mark.campaign
@settings(max_examples=20_000)
@turns
def test_so_does_what_was_sent_in_twenty_thousand(
    dialect: str, script: Any, data: st.DataObject
) -> None:
    check_turns(dialect, script, data)


def check_turns(dialect: str, script: Any, data: st.DataObject) -> None:
    body = WRITERS[dialect](script)
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    total = count(read(body, dialect), model=MODELS[dialect]).tokens
    limit = data.draw(st.integers(total // 3, total))
    state: FitState | None = None
    before = b""
    ends = [e.stop for e in read(body, dialect).exchanges if e.kind in ("user", "tool")]
    for end in ends:
        request = json.dumps({**body, key: body[key][:end]}).encode()
        try:
            fitted = fit(request, dialect=dialect, model=MODELS[dialect], limit=limit, state=state)
        except HoldfastError:
            return
        assert fitted.tokens <= limit
        assert validate(fitted.body, dialect, MODELS[dialect]) == []
        if before and not fitted.edits:
            assert fitted.body.startswith(before)
        tail = len(fitted.state.sent.frame.tail)
        # A last turn forbids tool calls in the fields before the messages; a following one allows
        # them again.
        sent = b"" if fitted.final else fitted.body[: len(fitted.body) - tail]
        before, state = sent, fitted.state


@settings(max_examples=100)
@given(st.sampled_from(DIALECTS), long_scripts(), st.data())
def test_fitting_again_changes_nothing(dialect: str, script: Any, data: st.DataObject) -> None:
    body = WRITERS[dialect](script)
    total = count(read(body, dialect), model=MODELS[dialect]).tokens
    limit = data.draw(st.integers(total // 3, total))
    try:
        once = fit(body, dialect=dialect, model=MODELS[dialect], limit=limit)
    except HoldfastError:
        return
    twice = fit(once.body, dialect=dialect, model=MODELS[dialect], limit=limit)
    assert twice.body == once.body
    again = fit(body, dialect=dialect, model=MODELS[dialect], limit=limit)
    assert again.body == once.body  # the same request, the same bytes


def talk(turns: int, size: int = 60) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the bug."}]
    for n in range(turns):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"file_{n}"})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} of it " * size}
        )
    return {"model": "gpt-4o", "messages": messages}


def test_history_is_folded_rarely_and_in_one_large_step() -> None:
    state, folds, sizes = None, 0, []
    whole = talk(60)
    limit = 6000
    for end in range(3, len(whole["messages"]) + 1, 2):
        fitted = fit({**whole, "messages": whole["messages"][:end]}, limit=limit, state=state)
        folds += bool(fitted.edits)
        sizes.append(fitted.tokens)
        state = fitted.state
    assert max(sizes) <= limit
    # 60 turns of 250 tokens are 15,000; between the marks there are 2,100.
    assert 1 <= folds <= 8


def test_a_fold_says_what_it_replaced() -> None:
    fitted = fit(talk(40), limit=3000, strategy="fold")
    [fold] = fitted.state.folds
    assert fold.messages == fold.stop - fold.start
    assert f"read_file {fold.messages // 2}x" in fitted.body.decode()
    originals = fitted.state.asked.messages[fold.start : fold.stop]
    assert len(originals) == fold.messages  # it can be undone
    [edit] = fitted.edits
    assert edit.from_tokens > edit.to_tokens
    assert edit.where == f"messages {fold.start} to {fold.stop - 1}"


def test_a_client_that_rewrites_its_history_starts_afresh() -> None:
    first = fit(talk(40), limit=3000)
    other = talk(41)
    other["messages"][0]["content"] = "Find another bug."
    fitted = fit(other, limit=3000, state=first.state)
    assert "another" in fitted.body.decode()
    assert fitted.tokens <= 3000


def test_an_ill_formed_history_is_repaired_on_the_way() -> None:
    body = talk(3)
    body["messages"].pop()  # the last call is unanswered
    fitted = fit(body, limit=5000)
    assert validate(fitted.body) == []


def test_the_models_own_limit_is_the_default() -> None:
    fitted = fit({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}, output=1000)
    assert fitted.limit == 128_000 - 256 - 1000


def test_what_cannot_fit_is_refused_with_the_anchors_and_their_tokens() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 500}]}
    with pytest.raises(AnchorPreservationError, match="message 0") as caught:
        fit(body, limit=100)
    assert isinstance(caught.value, ContextOptimizationError)
    assert "Raise the limit" in caught.value.fix
    assert "word" not in str(caught.value)


def test_what_is_no_anchor_goes_even_if_it_is_shorter_than_a_line_about_it() -> None:
    messages = [{"role": "user", "content": "Go."}]
    for n in range(50):
        messages.append({"role": "user", "content": f"You must {n}."})
        messages.append({"role": "assistant", "content": f"I will {n}."})
    body = {"model": "gpt-4o", "messages": [*messages, {"role": "user", "content": "Now."}]}
    limit = round(count(body).tokens * 0.75)
    fitted = fit(body, limit=limit)
    assert all(f"You must {n}." in fitted.body.decode() for n in range(50))
    assert limit - 20 <= fitted.tokens <= limit  # no more was removed than necessary
    assert {edit.what for edit in fitted.edits} == {"took out an exchange"}


def test_errors_of_tools_are_never_cut() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "is_error": True,
        "content": "Error! " * 300,
    }
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ],
    }
    total = count(body, dialect="anthropic").tokens
    with pytest.raises(AnchorPreservationError):
        fit(body, dialect="anthropic", limit=total - 300)


def test_a_fold_can_be_undone() -> None:
    fitted = fit(talk(40), limit=3000, strategy="fold")
    [fold] = fitted.state.folds
    undone = unfold(fitted.state, fold)
    assert undone.folds == ()
    assert write(undone.sent) == write(fitted.state.asked.with_messages(undone.asked.messages))


def test_history_rewritten_into_something_invalid_is_repaired() -> None:
    first = fit(talk(10), limit=20_000)
    body = talk(11)
    body["messages"][0]["content"] = "Changed."
    del body["messages"][2]  # an answer is missing, far from the end
    fitted = fit(body, limit=20_000, state=first.state)
    assert validate(fitted.body) == []


def test_a_counter_of_ones_own_is_obeyed() -> None:
    class Bytes:
        accuracy = "exact"

        def count(self, conversation: Conversation, model: str) -> int:  # noqa: ARG002
            return len(write(conversation)) // 3

    register_counter("my-model", Bytes())  # type: ignore[arg-type]
    try:
        body = {**talk(40), "model": "my-model"}
        fitted = fit(body, limit=5000)
        assert len(fitted.body) // 3 <= 5000
    finally:
        register_counter("my-model", None)


def test_a_digest_is_never_taken_for_the_question() -> None:
    whole = talk(80)
    state = None
    for end in range(3, len(whole["messages"]) + 1, 2):
        body = {**whole, "messages": whole["messages"][:end]}
        fitted = fit(body, limit=2500, state=state, strategy="fold")
        assert b"Find the bug." in fitted.body
        state = fitted.state


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="summarise, fold, heads_tails, progressive"):
        fit(talk(40), limit=3000, strategy="magic")


def test_a_strategy_that_fails_is_replaced_by_folding(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        name = "broken"
        description = "fails"

        def should_trim(self, tokens: float, limit: float) -> bool:
            return tokens > limit

        def estimate_savings(self, pieces: Any) -> float:
            return len(pieces)

        def trim(self, *_: Any) -> Any:
            raise ZeroDivisionError("words of the user")

    fitted = fit(talk(40), limit=3000, strategy=Broken())
    assert fitted.tokens <= 3000
    assert fitted.state.folds
    [told] = [record.getMessage() for record in caplog.records]
    assert "ZeroDivisionError" in told
    assert "words" not in told


def test_cutting_a_result_is_measured_where_it_stands() -> None:
    """Thinking before the last question is not read again: alone, its exchange would cost more."""
    result = ("0:0:\x84 " * 120).strip()
    body = {
        "model": MODELS["anthropic"],
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "0"},
            {"role": "assistant", "content": "Hm. " * 40},
            {"role": "user", "content": "And?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Well. " * 300, "signature": "x"},
                    {"type": "tool_use", "id": "c", "name": "look", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": result}],
            },
            {"role": "user", "content": "Never touch the tests."},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    }
    source = read(body, "anthropic")
    counted = count(source, model=MODELS["anthropic"])
    limit = round(least(source, counted)) + 10
    fitted = fit(body, dialect="anthropic", model=MODELS["anthropic"], limit=limit)
    assert fitted.tokens <= limit
