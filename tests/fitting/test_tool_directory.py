"""Hidden schemas: those that are kept, guarantees for a session, and tools that are not changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.engine.record import Before, asked_body, last_sides, written
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.fitting.found_tools import load_found
from holdfast.fitting.options import LazyRules
from holdfast.settings import Settings
from holdfast.store.records import Turn
from holdfast.upstream.tool_finder import lazy_rules
from tests.provider.tokens import functions
from tests.surfaces.proxy.harness import DIALECTS, request_in
from tests.surfaces.proxy.many_tools import MANY

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
    """Check that the client's bytes can be rebuilt from the record."""
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


@EACH
@pytest.mark.parametrize("name", ["ToolSearch", "tool_search"])
def test_a_client_that_searches_tools_itself_is_left_alone(dialect: str, name: str) -> None:
    """Claude Code names its own search so; its deferred tools are in no request."""
    asked = body(dialect, [*MANY, {**MANY[0], "name": name}])
    result = fitted(asked, dialect)
    assert defers(result) == []
    assert set(sent(result)) >= {tool["name"] for tool in MANY}


CORE: dict[str, list[str]] = {
    "Claude Code": ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"],
    "Codex": ["apply_patch", "exec_command", "shell", "view_image", "write_stdin"],
    "Gemini CLI": [
        *("glob", "grep_search", "list_directory", "read_file", "read_many_files", "replace"),
        *("run_shell_command", "search_file_content", "write_file"),
    ],
    "opencode": ["bash", "edit", "glob", "grep", "list", "patch", "read", "write"],
    "Cline": ["execute_command", "list_files", "replace_in_file", "search_files", "write_to_file"],
    "Copilot": ["create_file", "file_search", "list_dir", "run_in_terminal"],
    "OpenHands": ["execute_bash", "str_replace_editor"],
}
MCP = [{**tool, "name": f"mcp__{tool['name']}"} for tool in MANY]


@EACH
@pytest.mark.parametrize("client", CORE)
def test_file_and_shell_tools_stay_while_others_can_be_set_aside(dialect: str, client: str) -> None:
    core = [{**MANY[0], "name": name} for name in CORE[client]]
    for limit in (None, 40_000):  # too many tokens, and too much of the limit
        result = fitted(body(dialect, [*core, *MCP]), dialect, limit=limit)
        assert set(sent(result)) == OURS | set(CORE[client])
        again = fitted(body(dialect, [*core, *MCP]), dialect, result.state, limit=limit)
        assert sent(again) == sent(result)


def test_a_servers_tool_with_such_a_name_can_be_set_aside() -> None:
    other = {**MANY[0], "name": "mcp__files__read_file"}
    assert set(sent(fitted(body("anthropic", [*MANY, other]), "anthropic"))) == OURS


@EACH
def test_file_and_shell_tools_go_only_where_hardly_anything_else_would_fit(dialect: str) -> None:
    names = [*CORE["Claude Code"], *CORE["Gemini CLI"], *CORE["Cline"]]
    core = [{**MANY[0], "name": name} for name in names]
    roomy = fitted(body(dialect, core), dialect)
    assert defers(roomy) == []  # many tokens, but the agent needs them with every turn
    narrow = fitted(body(dialect, [*core, *MCP]), dialect, limit=9_000)
    assert set(sent(narrow)) == OURS


def called(names: Sequence[str], dialect: str = "openai-chat") -> bytes:
    """A request whose conversation has called these tools, one after the other."""
    value = json.loads(body(dialect))
    for n, name in enumerate(names):
        made = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        value["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": "fine"},
        ]
    return json.dumps(value).encode()


def test_all_tools_that_the_session_has_used_stay_while_others_can_be_set_aside() -> None:
    names = [tool["name"] for tool in MANY[:12]]
    result = fitted(called(names), "openai-chat")
    assert set(sent(result)) == OURS | set(names)


def test_where_the_limit_is_small_only_the_tools_used_last_stay() -> None:
    names = [tool["name"] for tool in MANY[:30]]
    result = fitted(called(names), "openai-chat", limit=8_000)
    assert set(sent(result)) == OURS | set(names[-8:])


CLAUDE_CODE = frozenset({"claude-code-20250219"})


@pytest.mark.parametrize(
    ("betas", "claimed"), [(frozenset(), True), (CLAUDE_CODE, False)], ids=["other", "Claude Code"]
)
@pytest.mark.parametrize("native", [False, True], ids=["ours", "Anthropic's"])
def test_no_saving_is_claimed_for_tools_that_the_client_would_have_deferred_itself(
    betas: frozenset[str], claimed: bool, native: bool
) -> None:
    """At a foreign address Claude Code sends all schemas, at Anthropic's own it defers them."""
    options: dict[str, Any] = {
        "betas": betas,
        "rules": msgspec.structs.replace(RULES, native=native),
        "model": "claude-opus-4-8",
        "offer_expand": "when_cited",  # else the tool that opens refs costs a few tokens
    }
    asked = body("anthropic", model="claude-opus-4-8")
    result = fitted(asked, "anthropic", **options)
    [edit] = defers(result)
    spared = holdfast.count(asked, dialect="anthropic").tokens - result.tokens
    assert spared > 10_000
    assert edit.from_tokens - edit.to_tokens == spared  # the record matches the edit
    assert result.untouched - result.tokens == (spared if claimed else 0)
    again = fitted(asked, "anthropic", result.state, **options)
    assert again.untouched == result.untouched


def test_an_answer_that_is_fetched_later_is_left_alone() -> None:
    assert defers(fitted(body("openai-responses", background=True), "openai-responses")) == []


def test_tools_that_were_called_lately_stay() -> None:
    name = MANY[4]["name"]
    assert set(sent(fitted(called([name]), "openai-chat"))) == OURS | {name}


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


def test_only_results_of_our_search_load_tools() -> None:
    """A page that a tool has read may name a tool, and must not load it."""
    told = json.dumps({"name": MANY[3]["name"]})
    calls = [
        {"type": "tool_use", "id": id_, "name": name, "input": {}}
        for id_, name in (("c1", "find_tools"), ("c2", "read_page"))
    ]
    results = [
        {"type": "tool_result", "tool_use_id": each["id"], "content": told} for each in calls
    ]
    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": calls},
            {"role": "user", "content": results},
        ],
    }
    loaded = load_found(holdfast.read(asked, "anthropic"), 0, [MANY[3]["name"]])
    searched, read_page = json.loads(holdfast.write(loaded))["messages"][2]["content"]
    assert searched["content"] == [{"type": "tool_reference", "tool_name": MANY[3]["name"]}]
    assert read_page["content"] == told
