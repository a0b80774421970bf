"""Schemas that Anthropic hides itself: it accepts every request, for any change of tools.

The checker is the provider of the tests, with the rules of Anthropic's pages.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.fitting import FitState, Fitted
from holdfast.wire import read
from holdfast.wire.deferred_tools import loads_tools
from holdfast.wire.places import head_of
from holdfast.wire.responses import HiddenTurn, Hop, ModelCall
from tests.fitting.test_tool_directory import OURS, RULES, defers, fitted, rebuilds
from tests.provider import claude_rules
from tests.provider.held_tools import referred, shown, violations
from tests.surfaces.proxy.many_tools import MANY

NATIVE = msgspec.structs.replace(RULES, native=True)
MODEL = "claude-sonnet-4-5"
KNOWING = ("claude-opus-4-5-20251101", "claude-haiku-4-5", "claude-opus-5", "claude-fable-5-1")
OLDER = ("claude-3-7-sonnet-latest", "claude-sonnet-4-20250514", "claude-opus-4-1", "glm-4.6")
MARK = {"type": "ephemeral"}


def declared(places: set[int]) -> list[dict[str, Any]]:
    return [
        {
            "name": MANY[n]["name"],
            "description": MANY[n]["description"],
            "input_schema": MANY[n]["parameters"],
        }
        for n in sorted(places)
    ]


def asked(tools: Any, *messages: Any, model: str = MODEL, **more: Any) -> bytes:
    history = messages or ({"role": "user", "content": "hi"},)
    value = {"model": model, "max_tokens": 1_000, "messages": history, "tools": tools, **more}
    return json.dumps(value).encode()


def holds_back(body: bytes, state: FitState | None = None, **more: Any) -> Fitted:
    value = json.loads(body)
    return fitted(body, "anthropic", state, more.pop("rules", NATIVE), model=value["model"], **more)


def names_shown(result: Fitted) -> set[str]:
    return {tool["name"] for tool in shown(json.loads(result.body))}


def obeys(result: Fitted, model: str) -> None:
    value = json.loads(result.body)
    assert [*violations(value, model), *claude_rules.violations(value, model)] == []


ALL = set(range(60))


@pytest.mark.parametrize("model", [MODEL, *KNOWING])
def test_the_schemas_stay_in_the_request_and_cost_nothing(model: str) -> None:
    body = asked(declared(ALL), model=model)
    result = holds_back(body)
    value = json.loads(result.body)
    assert names_shown(result) == {"find_tools", "expand_ref"}
    assert [tool["name"] for tool in value["tools"][:60]] == [tool["name"] for tool in MANY]
    assert result.untouched > 20_000
    assert result.tokens < 1_800
    [edit] = defers(result)
    assert (edit.from_tokens > 20_000, edit.to_tokens < 1_800, edit.ref_id) == (True, True, "")
    obeys(result, model)
    rebuilds(result, body)


@pytest.mark.parametrize("model", OLDER)
def test_a_model_that_is_not_documented_to_gets_our_two_tools(model: str) -> None:
    result = holds_back(asked(declared(ALL), model=model))
    assert names_shown(result) == OURS
    assert b"defer_loading" not in result.body


def test_more_tools_than_can_be_held_back_are_set_aside_by_us() -> None:
    tools = [{"name": f"t{n}", "input_schema": {"type": "object"}} for n in range(9_991)]
    assert not loads_tools(read(asked(tools), "anthropic"), MODEL)
    assert loads_tools(read(asked(tools[1:]), "anthropic"), MODEL)


def test_a_cache_mark_moves_from_what_is_held_back_to_what_is_shown() -> None:
    tools = declared(ALL)
    tools[-1]["cache_control"] = MARK
    body = asked(tools)
    result = holds_back(body)
    marked = [tool["name"] for tool in json.loads(result.body)["tools"] if "cache_control" in tool]
    assert marked == ["find_tools"]
    obeys(result, MODEL)
    rebuilds(result, body)
    again = holds_back(asked(declared(ALL)), result.state)  # the client takes its mark away
    assert b"cache_control" not in again.body


def test_forced_hosted_strict_and_unknown_tools_are_shown_as_they_came() -> None:
    tools = declared(ALL)
    tools[2]["strict"] = True
    tools[3]["allowed_callers"] = ["direct"]
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    forced = MANY[9]["name"]
    body = asked([*tools, hosted], tool_choice={"type": "tool", "name": forced})
    result = holds_back(body)
    sent = {tool["name"]: tool for tool in json.loads(result.body)["tools"]}
    assert names_shown(result) - {"expand_ref"} == {
        "find_tools",
        "web_search",
        forced,
        MANY[3]["name"],
    }
    assert sent["web_search"] == hosted
    assert sent[MANY[2]["name"]] == {**tools[2], "defer_loading": True}
    obeys(result, MODEL)
    rebuilds(result, body)
    after = holds_back(asked([*tools, hosted]), result.state)  # it stays: the prefix is cached
    assert names_shown(after) == names_shown(result)


def test_a_client_that_has_the_provider_search_is_left_alone() -> None:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    assert defers(holds_back(asked([*declared(ALL), search]))) == []


def test_a_client_with_a_tool_of_our_name_keeps_it() -> None:
    own = {"name": "find_tools", "description": "Mine.", "input_schema": {"type": "object"}}
    result = holds_back(asked([*declared(ALL), own]))
    assert "holdfast_find_tools" in names_shown(result)
    obeys(result, MODEL)


def test_a_session_that_began_with_our_two_tools_goes_on_with_them() -> None:
    before = holds_back(asked(declared(ALL)), rules=RULES)
    after = holds_back(asked(declared(ALL)), before.state)
    assert json.loads(after.body)["tools"] == json.loads(before.body)["tools"]


class Client:
    """A client that declares tools, calls what its model calls, and never sees a search."""

    def __init__(self) -> None:
        self.history: list[Any] = []
        self.hidden: list[HiddenTurn] = []
        self.calls = 0

    def ask(self, tools: list[dict[str, Any]], model: str, choice: str) -> bytes:
        self.history.append({"role": "user", "content": f"question {len(self.history)}"})
        more = {"tool_choice": {"type": "tool", "name": choice}} if choice else {}
        return asked(tools, *self.history, model=model, **more)

    def answered(self, body: bytes, found: list[dict[str, Any]]) -> None:
        """The model looks for some tools, and calls the first; the client answers that call."""
        if not found:
            self.history.append({"role": "assistant", "content": "Fine."})
            return
        self.calls += 1
        search, use = f"find{self.calls}", f"use{self.calls}"
        looks = {"type": "tool_use", "id": search, "name": "find_tools", "input": {"query": "x"}}
        uses = {"type": "tool_use", "id": use, "name": found[0]["name"], "input": {"city": "Oslo"}}
        turns = [{"role": "assistant", "content": [block]} for block in (looks, uses)]
        told = "\n".join(
            json.dumps({"name": tool["name"], "parameters": tool["input_schema"]}) for tool in found
        )
        asked_before = read(body, "anthropic")
        hops = (
            Hop((json.dumps(turns[0]).encode(),), ((ModelCall(search, "find_tools", "{}"), told),)),
            Hop((json.dumps(turns[1]).encode(),)),
        )
        place = head_of(asked_before)
        index = len(asked_before.messages)
        self.hidden.append(HiddenTurn(hops, index=index, place=place, dialect="anthropic"))
        result = {"type": "tool_result", "tool_use_id": use, "content": "rain"}
        self.history += [turns[1], {"role": "user", "content": [result]}]
        self.history.append({"role": "assistant", "content": "It rains."})


STEP = st.tuples(
    st.sets(st.integers(0, 59), min_size=30),
    st.sampled_from([MODEL, MODEL, MODEL, KNOWING[0], OLDER[1]]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)


@settings(deadline=None, max_examples=25)
@given(steps=st.lists(STEP, min_size=2, max_size=5))
def test_whatever_comes_and_goes_every_request_is_taken_and_rebuilt(steps: list[Any]) -> None:
    client, state = Client(), None
    before: dict[str, Any] = {}
    for places, model, able, forces, number in steps:
        tools = declared(places)
        body = client.ask(tools, model, tools[0]["name"] if forces else "")
        rules = NATIVE if able else RULES
        result = holds_back(body, state, rules=rules, hidden=client.hidden)
        obeys(result, model)
        rebuilds(result, body)
        value = json.loads(result.body)
        names = {tool["name"] for tool in tools}
        assert {tool["name"] for tool in value["tools"]} <= names | OURS
        held = any(tool.get("defer_loading") for tool in value["tools"])
        assert not held or (able and model not in OLDER)
        assert held or not set(referred(value))
        if before.get("tools") == value["tools"] and before.get("model") == model:
            assert value["messages"][: len(before["messages"])] == before["messages"]
        before, state = value, result.state
        withheld = [tool for tool in tools if tool["name"] not in names_shown(result)]
        client.answered(body, withheld[:number])
