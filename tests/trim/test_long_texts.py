"""A user's text larger than the window: its middle is removed, and a ref opens the original.

aider sends all files in one user message (issue 10, 4.6), smolagents the observations of its
tools.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import read
from holdfast.cite import CitingRules
from holdfast.document.pasted import TextSpan, document_in
from holdfast.errors import AnchorPreservationError
from holdfast.fitting import FitOptions, Fitted, fit_request
from holdfast.trim import TrimState, long_texts
from holdfast.trim.anchors import AnchorPreservationManager, lost_anchors, mark
from holdfast.trim.excerpts import middle_cut
from holdfast.trim.long_texts import CHARACTERS_PER_TOKEN
from holdfast.trim.provenance import fold_of, own_of
from holdfast.trim.relevance import latest_question, words_of
from holdfast.wire import Text
from tests.trim.test_fit import DIALECTS
from tests.trim.test_ladder import Workshop, chosen, messages_of, verbatim
from tests.wire.bodies import WRITERS, Script, Turn

QUESTION = "Which of these lines has the error code 77?"


def pasted(lines: int, name: str = "a") -> str:
    return "\n".join(f"{name}.log line {n}: https://host.example/{name}/{n}" for n in range(lines))


def aider(lines: int) -> dict[str, Any]:
    """The files, then the question: both in messages of the user."""
    messages = [
        {"role": "system", "content": "Act as an expert."},
        {"role": "user", "content": f"These are the files.\n{pasted(lines)}"},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": QUESTION},
    ]
    return {"model": "gpt-4o", "messages": messages}


def cut(body: object, limit: int, dialect: str = "openai-chat") -> Fitted:
    return fit_request(body, FitOptions(dialect=dialect, limit=limit, opens=True))


def written(dialect: str, *said: tuple[str, str]) -> dict[str, Any]:
    turns = [Turn(role, text, [], thinking=False, listed=False, extra={}) for role, text in said]
    return WRITERS[dialect](Script("", [], turns, {}))


def texts(body: object, dialect: str = "openai-chat") -> list[str]:
    conversation = read(body, dialect)
    blocks = [block for message in conversation.messages for block in message.blocks]
    return [block.text for block in blocks if isinstance(block, Text)]


def test_the_middle_of_a_pasted_file_goes_and_the_question_stays() -> None:
    fitted = cut(aider(700), 8_000)
    assert fitted.tokens <= 8_000
    [files] = [text for text in texts(fitted.body) if "These are the files" in text]
    assert files.startswith("These are the files.\na.log line 0:")
    assert files.endswith("a.log line 699: https://host.example/a/699")
    assert texts(fitted.body)[-1] == QUESTION
    [edit] = [edit for edit in fitted.edits if edit.action == "shorten"]
    assert (edit.what, edit.where) == ("cut the middle of a long text", "message 1")
    [content] = [content for content in fitted.contents if content.ref_id == edit.ref_id]
    assert content.data.decode() == aider(700)["messages"][1]["content"]
    assert f'expand_ref("{content.ref_id}")' in files


def test_no_more_is_cut_than_must_be() -> None:
    fitted = cut(aider(700), 8_000)
    assert fitted.tokens > 8_000 * 0.6


def test_a_cut_runs_through_no_address() -> None:
    for limit in range(4_000, 9_000, 500):
        [files] = [text for text in texts(cut(aider(700), limit).body) if "the files" in text]
        addresses = re.findall(r"https?:\S*", files)
        assert all(re.fullmatch(r"https://host\.example/a/\d+", one) for one in addresses)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_message_that_is_too_long_is_cut_in_every_dialect(dialect: str) -> None:
    body = written(dialect, ("user", f"{pasted(900)}\n{QUESTION}"))
    fitted = cut(body, 4_000, dialect)
    assert fitted.tokens <= 4_000
    [shown] = texts(fitted.body, dialect)
    assert shown.startswith("a.log line 0:")
    assert shown.endswith(QUESTION)


def test_a_bare_input_is_cut_too() -> None:
    body = {"model": "gpt-5", "input": f"{pasted(900)}\n{QUESTION}"}
    fitted = cut(body, 4_000, "openai-responses")
    assert fitted.tokens <= 4_000
    assert json.loads(fitted.body)["input"].endswith(QUESTION)


def test_older_texts_go_before_the_latest_question() -> None:
    body = aider(400)
    body["messages"][-1]["content"] = f"{QUESTION}\n{pasted(60, 'b')}"
    assert body["messages"][-1]["content"] in texts(cut(body, 4_000).body)
    shorter = texts(cut(body, 1_900).body)[-1]
    assert shorter.startswith(QUESTION)
    assert len(shorter) >= 900


def test_of_the_latest_question_a_thousand_characters_stay_or_it_is_an_error() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": pasted(900)}]}
    with pytest.raises(AnchorPreservationError):
        cut(body, 400)


def test_what_the_user_marked_is_whole_or_an_error() -> None:
    conversation = read(aider(700), "openai-chat")
    mark(conversation.messages[1])
    with pytest.raises(AnchorPreservationError):
        cut(conversation, 8_000)


def test_a_rule_in_a_long_text_is_no_rule_once_the_text_is_cut() -> None:
    body = aider(700)
    body["messages"][1]["content"] += "\nYou must never guess."
    shop = Workshop(body, "openai-chat")
    last = messages_of(shop.ladder(0)[-1])
    kinds = [anchor.type for anchor in AnchorPreservationManager().identify(last)]
    assert "instruction_anchor" not in kinds
    asked = shop.conversation.messages
    assert lost_anchors(AnchorPreservationManager().identify(asked), asked, last) == ()


def test_the_same_cut_goes_out_next_time_and_a_new_one_is_made_of_the_whole() -> None:
    options = FitOptions(dialect="openai-chat", limit=8_000, opens=True)
    body = aider(700)
    first = fit_request(body, options)
    body["messages"] += [
        {"role": "assistant", "content": "Line 12."},
        {"role": "user", "content": "Sure?"},
    ]
    second = fit_request(body, options, state=first.state)
    assert texts(second.body)[:2] == texts(first.body)[:2]
    assert second.edits == ()
    smaller = FitOptions(dialect="openai-chat", limit=4_000, opens=True)
    third = fit_request(body, smaller, state=second.state)
    [files] = [text for text in texts(third.body) if "These are the files" in text]
    assert files.count("characters cut") == 1
    assert third.contents[-1].data.decode() == aider(700)["messages"][1]["content"]


def test_moved_cache_marks_keep_both_the_cut_text_and_the_citation_beside_it() -> None:
    def body(*, marked: bool) -> dict[str, Any]:
        text: dict[str, Any] = {"type": "text", "text": pasted(600)}
        mark_of_client = {"cache_control": {"type": "ephemeral"}} if marked else {}
        result = {"type": "tool_result", "tool_use_id": "t", "content": pasted(500, "b")}
        return {
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": [{"type": "tool_use", **CALL}]},
                {"role": "user", "content": [result, {**text, **mark_of_client}]},
            ],
        }

    rules = CitingRules(policy="always")
    options = FitOptions(dialect="anthropic", limit=5_000, opens=True, cites=True, rules=rules)
    first = fit_request(body(marked=True), options)
    again = fit_request(body(marked=False), options, state=first.state)
    assert "cache_control" not in again.body.decode()
    unmarked = json.loads(first.body)
    del unmarked["messages"][2]["content"][1]["cache_control"]
    assert json.loads(again.body)["messages"] == unmarked["messages"]


CALL = {"id": "t", "name": "look", "input": {}}


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(DIALECTS),
    st.lists(st.integers(10, 400), min_size=1, max_size=4),
    st.lists(st.floats(0.05, 1), min_size=2, max_size=3),
)
def test_a_larger_budget_keeps_at_least_as_much_of_every_text(
    dialect: str, sizes: list[int], shares: list[float]
) -> None:
    script = [
        entry
        for n, size in enumerate(sizes)
        for entry in (("user", pasted(size, f"f{n}")), ("assistant", f"Seen {n}."))
    ]
    shop = Workshop(written(dialect, *script, ("user", QUESTION)), dialect)
    total = sum(piece.tokens for piece in shop.pieces)
    smaller: TrimState | None = None
    for share in sorted(shares):
        state = chosen(shop, total * share, "auto", most=total * share)
        if smaller is not None:
            assert state is not None
            assert verbatim(state) >= verbatim(smaller)
            longer = shown(state)
            assert all(longer.get(n, 0) >= size for n, size in shown(smaller).items())
        smaller = state or smaller


def shown(state: TrimState) -> dict[int, int]:
    """Return the characters of each of the client's messages that are sent, digests aside."""
    return {
        id(own_of(message)): len(message.span)
        for message in messages_of(state)
        if fold_of(message) is None
    }


def test_a_text_far_over_the_limit_is_searched_once_and_cut_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """31 MB were searched, cut and counted 13 times on their way down to the window."""
    searched: list[int] = []
    cuts: list[int] = []

    def search(text: str) -> TextSpan:
        searched.append(len(text))
        return document_in(text)

    def cut_text(text: str, most: int, *args: Any, **options: Any) -> str:
        cuts.append(most)
        return middle_cut(text, most, *args, **options)

    monkeypatch.setattr(long_texts, "document_in", search)
    monkeypatch.setattr(long_texts, "middle_cut", cut_text)
    limit = 2_000
    text = pasted(20_000)
    assert len(text) > 400 * limit
    fitted = cut({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}, limit)
    assert fitted.tokens <= limit
    assert searched == [len(text)]
    assert cuts
    assert max(cuts) <= CHARACTERS_PER_TOKEN * limit


@given(st.integers(800, 4_000), st.integers(1, 4))
@settings(deadline=None, max_examples=15)
def test_a_larger_limit_never_shows_less_of_a_text_far_over_it(limit: int, times: int) -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": pasted(3_000)}]}
    less, more = cut(body, limit), cut(body, limit * times)
    assert less.tokens <= more.tokens <= limit * times


def test_a_question_behind_an_observation_is_the_latest_one() -> None:
    """smolagents joins both in one message: an older question was searched for instead."""
    said = [
        {"role": "user", "content": "New task:\nWhat is the code of step 17?"},
        {"role": "user", "content": "Observation:\nstep 17 is done\nNew task:\nAnd of step 90?"},
        {"role": "user", "content": "Observation:\nstep 18 is done"},
    ]
    messages = read(json.dumps({"model": "gpt-4o", "messages": said}).encode()).messages
    assert words_of(latest_question(messages)) == "And of step 90?"
