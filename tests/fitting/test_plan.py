"""The plan of a request: equal for equal inputs, consistent with its result, and complete."""

from __future__ import annotations

import hashlib
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.cite import Citation, CitePolicy, CitingRules, count
from holdfast.errors import BudgetExceededError
from holdfast.fitting import FitOptions, FitPlan, FitState, Fitted, plan
from holdfast.fitting.reads import Answer, CiteRequest, read_here
from holdfast.trim.provenance import edits_of, originals_of
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log

OPTIONS = FitOptions(model="gpt-4o", limit=4_000, cites=True, opens=True, opens_ahead=True)
RULES = [CitingRules(policy=policy) for policy in get_args(CitePolicy)]
_HIDING = {"cite", "repeat", "fold", "shorten", "drop"}


def finished(made: FitPlan) -> tuple[list[FitPlan], Fitted]:
    """All plans on the way to a request, and the request."""
    plans, outcome = [made], made.finish(read_here(made.reads))
    while isinstance(outcome, FitPlan):
        plans.append(outcome)
        outcome = outcome.finish(read_here(outcome.reads))
    return plans, outcome


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    sizes = draw(st.lists(st.sampled_from([1, 20, 60, 150, 400]), min_size=1, max_size=7))
    same = draw(st.booleans())
    results = [log(size, 0 if same else seed) for seed, size in enumerate(sizes)]
    asks = draw(st.sampled_from(["What went wrong?", "Which step of 0-17 went well?"]))
    pasted = draw(st.sampled_from(["", "", log(150, 99)]))
    return chat(*results, question=f"{asks}\n\n{pasted}".strip())


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, str, FitOptions]:
    dialect = draw(st.sampled_from(DIALECTS))
    limit = draw(st.sampled_from([700, 1_500, 4_000, 20_000]))
    rules = draw(st.sampled_from(RULES))
    options = msgspec.structs.replace(OPTIONS, limit=limit, rules=rules, cites=draw(st.booleans()))
    return in_dialect(draw(bodies()), dialect), dialect, options


@settings(max_examples=60, deadline=None)
@given(cases())
def test_equal_inputs_give_equal_plans_and_requests(case: tuple[bytes, str, FitOptions]) -> None:
    body, _, options = case
    try:
        plans, fitted = finished(plan(body, options))
    except BudgetExceededError as error:
        with pytest.raises(BudgetExceededError, match=str(error).split(":")[0][:30]):
            finished(plan(body, options))
        return
    again, fitted_again = finished(plan(body, options))
    assert again == plans
    assert fitted_again.body == fitted.body
    assert fitted_again.contents == fitted.contents
    assert fitted_again.plan == fitted.plan


@settings(max_examples=40, deadline=None)
@given(cases())
def test_a_plan_can_be_finished_again(case: tuple[bytes, str, FitOptions]) -> None:
    body, _, options = case
    try:
        plans, fitted = finished(plan(body, options))
    except BudgetExceededError:
        return
    for n, made in enumerate(plans):
        later, again = finished(made)
        assert later == plans[n:]
        assert (again.body, again.edits) == (fitted.body, fitted.edits)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_no_request_is_larger_than_its_plan_promised(case: tuple[bytes, str, FitOptions]) -> None:
    body, dialect, options = case
    try:
        plans, fitted = finished(plan(body, options))
    except BudgetExceededError:
        return
    assert {made.limit for made in plans} == {options.limit}
    assert holdfast.count(fitted.body, dialect=dialect).tokens <= plans[0].limit
    for made in plans:
        for request, answer in zip(made.reads, read_here(made.reads), strict=True):
            if isinstance(request, CiteRequest) and isinstance(answer, Citation):
                assert not answer.ref_id or count(answer.text) <= request.most_tokens


@settings(max_examples=60, deadline=None)
@given(cases())
def test_nothing_is_hidden_without_an_entry(case: tuple[bytes, str, FitOptions]) -> None:
    body, _, options = case
    try:
        _, fitted = finished(plan(body, options))
    except BudgetExceededError:
        return
    stored = {content.ref_id: content for content in fitted.contents}
    planned = {(entry.action, entry.what, entry.why, entry.where) for entry in fitted.plan}
    for message, (start, stop) in zip(
        fitted.state.sent.messages, fitted.state.origins, strict=True
    ):
        asked = fitted.state.asked.messages[start:stop]
        if [message.raw] == [own.raw for own in asked]:
            continue
        edits = edits_of(message)
        assert edits
        assert all((e.action, e.what, e.why, e.where) in planned for e in edits)
        assert [own.raw for own in originals_of(message)] == [own.raw for own in asked]
        for edit in edits:
            if edit.action in _HIDING and edit.ref_id:
                content = stored[edit.ref_id]
                assert hashlib.sha256(content.data).hexdigest() == content.sha256


@settings(max_examples=30, deadline=None)
@given(bodies(), st.sampled_from(DIALECTS))
def test_a_later_request_has_a_plan_of_its_own(body: dict[str, Any], dialect: str) -> None:
    first = {**body, "messages": body["messages"][:3]}

    def conversation() -> list[FitPlan]:
        state: FitState | None = None
        plans: list[FitPlan] = []
        for asked in (first, body):
            made, fitted = finished(plan(in_dialect(asked, dialect), OPTIONS, state=state))
            plans += made
            state = fitted.state
        return plans

    assert conversation() == conversation()


def test_a_plan_says_what_becomes_of_each_long_result() -> None:
    body = in_dialect(chat(log(60), log(800, 1)), "openai-chat")
    made = plan(body, OPTIONS)
    [request] = made.reads
    assert isinstance(request, CiteRequest)
    assert request.text == log(800, 1)
    entries = {entry.where: entry for entry in made.entries if entry.what.startswith("result")}
    assert entries["message 2"].action == "whole"
    assert entries["message 2"].why
    assert entries["message 4"].action == "cite"
    assert entries["message 4"].to_tokens == request.most_tokens
    assert "2 decisions, 1 contents to read" in repr(made)


def test_what_may_not_leave_stays() -> None:
    made = plan(in_dialect(chat(log(300)), "openai-chat"), OPTIONS)
    refused: list[Answer] = [None] * len(made.reads)
    fitted = made.finish(refused)
    assert isinstance(fitted, Fitted)
    assert json.loads(fitted.body)["messages"] == chat(log(300))["messages"]
    assert fitted.contents == ()


def test_each_content_needs_an_answer() -> None:
    made = plan(in_dialect(chat(log(300)), "openai-chat"), OPTIONS)
    with pytest.raises(ValueError, match="1 answers are needed, not 0"):
        made.finish()
