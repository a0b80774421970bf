"""Schemas that are set aside: what stays, what a session may rely on, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.calling.finding import lazy_rules
from holdfast.engine.record import Before, asked_body, last_sides, written
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.fitting.options import LazyRules
from holdfast.settings import Settings
from holdfast.store.records import Turn
from tests.provider.tokens import functions
from tests.proxy.harness import DIALECTS, request_in
from tests.proxy.many_tools import MANY

EACH = pytest.mark.parametrize("dialect", DIALECTS)
OURS = {"find_tools", "call_tool", "expand_ref"}
RULES = lazy_rules(Settings(lazy_tool_tokens=3_000))


def body(dialect: str, tools: Sequence[Any] = MANY, words: str = "hi", **more: Any) -> bytes:
    declared = [{"type": "function", "function": tool} for tool in tools]
    asked = {"model": "gpt-5", "messages": [{"role": "user", "content": words}], "tools": declared}
    value = json.loads(request_in(dialect, asked))
    return json.dumps({**value, **more}).encode()


def fitted(
    asked: bytes, dialect: str, state: FitState | None = None, rules: LazyRules = RULES, **more: Any
) -> Fitted:
    options = FitOptions(dialect=dialect, model="gpt-5", cites=True, opens=True, lazy=rules)
    hidden = more.pop("hidden", ())
    return fit_request(asked, msgspec.structs.replace(options, **more), state=state, hidden=hidden)


def sent(result: Fitted) -> list[str]:
    """The names of the tools that go out, in their order."""
    return [str(function["name"]) for function in functions(json.loads(result.body))]


def defers(result: Fitted) -> list[Any]:
    return [edit for edit in result.edits if edit.action == "defer"]


def rebuilds(result: Fitted, asked: bytes) -> None:
    """The client's bytes come back from what is written down."""
    record = written(result.state, Before())
    turn = Turn(
        number=1,
        started_at=0,
        sent=record.trail,
        standings=record.standings,
        patches=record.patches,
        asked=record.asked,
    )
    sides = last_sides([turn])
    assert sides is not None
    stored = {name: bytes(data) for name, data in record.messages.items()}
    assert asked_body(sides, stored) == asked


@EACH
def test_forty_tools_of_twelve_thousand_tokens_go_out_with_at_most_fifteen_hundred(
    dialect: str,
) -> None:
    asked = body(dialect, MANY[:40])
    result = fitted(asked, dialect)
    assert result.untouched > 12_000
    assert result.tokens <= 1_500
    [edit] = defers(result)
    assert edit.from_tokens > 12_000
    assert edit.to_tokens < 1_500
    assert edit.ref_id in {content.ref_id for content in result.contents}
    rebuilds(result, asked)


@EACH
def test_what_is_replaced_is_stored_once_and_not_with_every_turn(dialect: str) -> None:
    asked = body(dialect)
    result = fitted(asked, dialect)
    first = written(result.state, Before())
    assert all(len(patch.was) < 2_001 for patch in first.patches)
    again = written(result.state, first.known)
    assert sum(map(len, again.messages.values())) < 2_000


@EACH
def test_a_request_below_the_threshold_is_left_as_it_is(dialect: str) -> None:
    result = fitted(body(dialect), dialect, rules=lazy_rules(Settings()))
    assert defers(result) == []
    assert set(sent(result)) == {tool["name"] for tool in MANY} | {"expand_ref"}


@EACH
def test_tools_that_take_half_of_the_limit_are_set_aside_whatever_the_threshold(
    dialect: str,
) -> None:
    result = fitted(body(dialect), dialect, rules=lazy_rules(Settings()), limit=30_000)
    assert set(sent(result)) == OURS
    assert result.tokens < 2_000


CHOICES: dict[str, Any] = {
    "openai-chat": {"tool_choice": {"type": "function", "function": {"name": MANY[9]["name"]}}},
    "openai-responses": {"tool_choice": {"type": "function", "name": MANY[9]["name"]}},
    "anthropic": {"tool_choice": {"type": "tool", "name": MANY[9]["name"]}},
    "gemini": {
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [MANY[9]["name"]]}
        }
    },
}


@EACH
def test_a_forced_tool_is_there_in_full_and_stays(dialect: str) -> None:
    before = fitted(body(dialect), dialect)
    forced = body(dialect, **CHOICES[dialect])
    result = fitted(forced, dialect, before.state)
    assert set(sent(result)) == OURS | {MANY[9]["name"]}
    rebuilds(result, forced)
    after = fitted(body(dialect), dialect, result.state)
    assert sent(after) == sent(result)


@EACH
def test_a_client_with_tools_of_our_names_keeps_them(dialect: str) -> None:
    own = {**MANY[0], "name": "find_tools"}
    result = fitted(body(dialect, [*MANY, own]), dialect)
    names = sent(result)
    assert {"holdfast_find_tools", "holdfast_call_tool"} <= set(names)
    taken = [{**MANY[0], "name": name} for name in ("find_tools", "holdfast_call_tool")]
    assert defers(fitted(body(dialect, [*MANY, *taken]), dialect)) == []


@EACH
def test_tools_that_go_change_nothing_and_new_ones_are_listed(dialect: str) -> None:
    before = fitted(body(dialect, MANY[:50]), dialect)
    fewer = fitted(body(dialect, MANY[:40]), dialect, before.state)
    assert json.loads(fewer.body)["tools"] == json.loads(before.body)["tools"]
    more = fitted(body(dialect, MANY), dialect, fewer.state)
    assert MANY[55]["name"] in more.body.decode()
    assert sent(more) == sent(before)


@EACH
def test_a_session_that_began_with_its_schemas_keeps_them(dialect: str) -> None:
    before = fitted(body(dialect), dialect, rules=lazy_rules(Settings(lazy_tools="never")))
    assert defers(fitted(body(dialect), dialect, before.state)) == []


def test_a_providers_own_tools_and_unknown_members_are_left_alone() -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    other = {"name": "runs", "input_schema": {"type": "object"}, "allowed_callers": ["code"]}
    value = json.loads(body("anthropic"))
    value["tools"] += [hosted, other]
    value["tools"][3]["cache_control"] = {"type": "ephemeral"}
    result = fitted(json.dumps(value).encode(), "anthropic")
    tools = json.loads(result.body)["tools"]
    assert tools[:2] == [hosted, other]
    marks = [tool["name"] for tool in tools if "cache_control" in tool]
    assert marks == ["call_tool"]


def test_a_client_that_defers_tools_itself_is_left_alone() -> None:
    value = json.loads(body("anthropic"))
    value["tools"][0]["defer_loading"] = True
    assert defers(fitted(json.dumps(value).encode(), "anthropic")) == []


def test_an_answer_that_is_fetched_later_is_left_alone() -> None:
    assert defers(fitted(body("openai-responses", background=True), "openai-responses")) == []


def test_tools_that_were_called_lately_stay() -> None:
    name = MANY[4]["name"]
    value = json.loads(body("openai-chat"))
    made = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    value["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": "fine"},
    ]
    assert set(sent(fitted(json.dumps(value).encode(), "openai-chat"))) == OURS | {name}


@settings(deadline=None, max_examples=30)
@given(
    dialect=st.sampled_from(DIALECTS),
    chosen=st.lists(st.sets(st.integers(0, 59), min_size=1), min_size=1, max_size=4),
    pinned=st.lists(st.sampled_from(["office_1*", "*_2", "nothing"]), max_size=2),
)
def test_whatever_comes_and_goes_every_request_is_rebuilt_and_nothing_unknown_is_offered(
    dialect: str, chosen: list[set[int]], pinned: list[str]
) -> None:
    rules = lazy_rules(Settings(lazy_tool_tokens=3_000, pinned_tools=pinned))
    state: FitState | None = None
    shown: set[str] = set()
    for places in chosen:
        tools = [MANY[n] for n in sorted(places)]
        declared = {tool["name"] for tool in tools}
        asked = body(dialect, tools)
        result = fitted(asked, dialect, state, rules)
        names = sent(result)
        assert set(names) <= declared | OURS
        if deferred := "find_tools" in names:
            assert shown & declared <= set(names)
            assert result.tokens < result.untouched or state is not None
        rebuilds(result, asked)
        state, shown = result.state, set(names) - OURS if deferred else set()


@EACH
def test_what_leaves_is_stored_whenever_it_is_not_what_left_before(dialect: str) -> None:
    before = fitted(body(dialect, MANY[:50]), dialect)
    again = fitted(body(dialect, MANY[:50]), dialect, before.state)
    assert (defers(again), again.contents) == ([], ())
    more = fitted(body(dialect, MANY), dialect, again.state)
    [edit] = defers(more)
    assert edit.ref_id in {content.ref_id for content in more.contents}
