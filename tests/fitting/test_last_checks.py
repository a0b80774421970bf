"""The final checks: without one of them, nothing else fails (see mutation.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.cite import CitingRules
from holdfast.errors import BudgetExceededError
from holdfast.fitting import Fitted, fit, fold_history
from holdfast.fitting.draft import standing_for
from holdfast.store.records import Edit
from holdfast.tokens import Calibration, ModelContextRegistry
from holdfast.trim.chains import TrimState
from holdfast.trim.pieces import Bench, Piece
from holdfast.wire import DIALECTS, Message

SECRET = "AKIA" + "QWERTYUIOPASDFGH"


def text(words: int) -> str:
    return " ".join(f"word{n}" for n in range(words))


def repairs(fitted: Fitted) -> list[str]:
    return [edit.where for edit in fitted.edits if edit.action == "repair"]


# --- what is added to a request that went out before ---------------------------------------------

ASKED = {"role": "user", "content": "What is in the file?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "nothing"}
BLANK = {"type": "text", "text": " "}
ADDED_AND_BROKEN: dict[str, list[dict[str, Any]]] = {
    "a call that nobody answered": [CALL, {"role": "user", "content": "Go on."}],
    "an answer to no call": [{**RESULT, "tool_call_id": "c9"}],
}


@pytest.mark.parametrize("added", ADDED_AND_BROKEN.values(), ids=ADDED_AND_BROKEN.keys())
def test_what_is_broken_in_what_was_added_is_repaired(added: list[dict[str, Any]]) -> None:
    body = {"model": "gpt-4o", "messages": [ASKED]}
    before = fit(body, limit=10_000)
    assert before.edits == ()
    fitted = fit({**body, "messages": [ASKED, *added]}, limit=10_000, state=before.state)
    assert holdfast.validate(fitted.body) == []
    assert repairs(fitted)


def test_what_breaks_a_rule_in_what_was_added_is_repaired_though_no_call_is_open() -> None:
    """Blank text of a user is refused by Anthropic, whole exchanges or not."""
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hello."}],
    }
    before = fit(body, limit=10_000)
    added = [
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": "Go on."}, BLANK]},
    ]
    asked = {**body, "messages": [*body["messages"], *added]}
    assert holdfast.validate(asked) != []
    fitted = fit(asked, limit=10_000, state=before.state)
    assert holdfast.validate(fitted.body) == []
    assert repairs(fitted)


def test_what_is_whole_in_what_was_added_goes_out_as_it_came() -> None:
    body = {"model": "gpt-4o", "messages": [ASKED]}
    before = fit(body, limit=10_000)
    more = {**body, "messages": [ASKED, CALL, RESULT]}
    fitted = fit(more, limit=10_000, state=before.state)
    assert json.loads(fitted.body) == more
    assert fitted.edits == ()


# --- how large it may be --------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A configuration in which a model has a window of our own choice."""

    tokens: int
    model_context_overrides: dict[str, object] = field(default_factory=dict)

    def registry(self, model: str) -> ModelContextRegistry:
        self.model_context_overrides[model] = {"context_window": self.tokens}
        return ModelContextRegistry(self)


def long_talk(turns: int) -> dict[str, Any]:
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"{n} {text(60)}"} for n in range(turns)
    ]
    last = {"role": "user", "content": "And now?"}
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [*messages, last]}


def test_the_upper_bound_must_fit_where_nobody_gave_a_limit() -> None:
    """Counts of Claude are estimates: the API may refuse a request that fits by its count alone."""
    body = long_talk(40)
    counted = holdfast.count(body)
    assert counted.tokens < counted.upper, "else this test shows nothing"
    between = (counted.tokens + counted.upper) // 2
    registry = Window(between + 100).registry("claude-sonnet-4-5")
    fitted = fit(body, output=100, registry=registry)
    assert counted.tokens < fitted.limit < counted.upper
    assert fitted.count.upper <= fitted.limit
    assert fitted.edits


def test_a_limit_that_was_given_is_one_for_the_count() -> None:
    body = long_talk(40)
    counted = holdfast.count(body)
    fitted = fit(body, limit=counted.tokens)
    assert json.loads(fitted.body) == body


def test_what_does_not_fit_is_never_sent() -> None:
    rules = {"role": "system", "content": text(2_000)}
    question = {"role": "user", "content": "Why?"}
    with pytest.raises(BudgetExceededError):
        fit({"model": "gpt-4o", "messages": [rules, question]}, limit=500)


# --- what may not leave, and what may not stand together -----------------------------------------


def talk_with_secret() -> dict[str, Any]:
    body = long_talk(20)
    body["messages"][5]["content"] = f"The key is {SECRET}. {text(60)}"
    return body


def test_a_fold_leaves_in_what_may_not_be_stored() -> None:
    body = talk_with_secret()
    limit = holdfast.count(body).tokens // 2
    fitted = fit(body, limit=limit, citing=CitingRules(privacy="refuse"))
    assert fitted.state.folds, "the rest was folded"
    assert body["messages"][5] in json.loads(fitted.body)["messages"]
    assert not any(SECRET.encode() in content.data for content in fitted.contents)


def test_where_it_may_be_stored_it_leaves_and_its_ref_says_what_is_in_it() -> None:
    body = talk_with_secret()
    limit = holdfast.count(body).tokens // 2
    fitted = fit(body, limit=limit, citing=CitingRules(privacy="allow"))
    assert body["messages"][5] not in json.loads(fitted.body)["messages"]
    [content] = [content for content in fitted.contents if SECRET.encode() in content.data]
    assert content.flags


class Emptying:
    """Another's strategy: it puts an empty message in the place of the first piece."""

    name = "emptying"
    description = "Leaves nothing of the first piece."

    def should_trim(self, tokens: float, limit: float) -> bool:
        return tokens > limit

    def estimate_savings(self, pieces: Sequence[Piece]) -> float:
        return pieces[0].tokens

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> TrimState:
        del target
        first = pieces[0]
        raw = b'{"role": "user", "content": ""}'
        message = Message(raw, "user", DIALECTS[bench.dialect])
        edit = Edit(action="shorten", what="emptied a message", why="short", where="")
        empty = standing_for(message, first.messages, (edit,))
        return TrimState(
            [msgspec.structs.replace(first, messages=(empty,), tokens=4), *pieces[1:]], (edit,)
        )


def test_a_state_that_breaks_a_rule_is_passed_over() -> None:
    """Anthropic refuses empty messages; the next smaller state is taken."""
    body = long_talk(20)
    limit = holdfast.count(body).tokens - 50
    fitted = fit(body, limit=limit, anchors=(), strategy=Emptying())
    assert holdfast.validate(fitted.body) == []
    assert fitted.tokens <= limit
    assert fitted.state.folds, "the emergency's fold was taken instead"


def test_messages_that_come_to_stand_together_are_looked_at() -> None:
    """OpenAI refuses a reasoning item without the item that it led to."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    answer = {"type": "message", "role": "assistant", "content": "It is a log."}
    asked = [{"role": "user", "content": f"Question {n}."} for n in range(3)]
    items = [asked[0], reasoning, answer, asked[1], answer, asked[2]]
    before = holdfast.read({"model": "gpt-5", "input": items}, "openai-responses")
    first, thought, told, *rest = before.messages

    def keeps(*messages: Message) -> bool:
        return fold_history.keeps_rules(before, before.with_messages(messages), "gpt-5")

    assert keeps(first, thought, told, *rest)
    assert keeps(thought, told, *rest)
    assert keeps(first, thought, told)
    assert not keeps(first, thought, *rest), "what it led to is gone from the middle"
    assert not keeps(thought, *rest), "and so is what stood before it"
    assert not keeps(first, thought), "it may not stand last either"
    digest = Message(b'{"role": "user", "content": "Folded."}', "user", DIALECTS[before.dialect])
    assert not keeps(first, thought, digest, *rest)


def test_a_rule_between_two_messages_that_were_added_is_kept() -> None:
    """Anthropic takes an empty message of the assistant only as the last one."""
    hello = {"role": "user", "content": "Hello."}
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [hello]}
    before = fit(body, limit=10_000)
    added = [{"role": "assistant", "content": []}, {"role": "user", "content": "Are you there?"}]
    asked = {**body, "messages": [hello, *added]}
    assert holdfast.validate(asked) != []
    fitted = fit(asked, limit=10_000, state=before.state)
    assert holdfast.validate(fitted.body) == []


def test_what_is_broken_in_a_first_request_is_repaired() -> None:
    fitted = fit({"model": "gpt-4o", "messages": [ASKED, CALL]}, limit=10_000)
    assert holdfast.validate(fitted.body) == []
    assert repairs(fitted)


def test_what_only_the_whole_of_a_first_request_shows_is_repaired() -> None:
    """Two calls of one id are each answered; only who reads both sees that one repeats."""
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "nothing"}
    turn = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [ASKED, *turn, *turn]}
    assert holdfast.validate(body) != []
    fitted = fit(body, limit=10_000)
    assert holdfast.validate(fitted.body) == []
    assert repairs(fitted)


# --- a count that was corrected ------------------------------------------------------------------


def test_a_count_that_was_corrected_to_less_has_to_fit_with_what_it_may_be_at_most() -> None:
    """A recorded conversation was sent 0.4 % above its limit: its calibration was too low."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text(800)}]}
    untouched = holdfast.count(body)
    calibration = Calibration()
    for n in range(20):  # most turns take less than was counted, some nearly as much
        calibration.observe(untouched, round(untouched.tokens * (0.97 if n % 5 == 0 else 0.8)))
    corrected = calibration.correct(untouched)
    assert corrected.tokens < untouched.tokens
    assert fit(body, limit=untouched.tokens, calibration=calibration).edits == ()
    tight = fit(body, limit=corrected.tokens + 5, calibration=calibration)
    at_most = calibration.correct(holdfast.count(tight.body))
    assert tight.edits
    assert min(at_most.plain, at_most.upper) <= corrected.tokens + 5
