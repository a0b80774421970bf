"""Details found by a mutation run: places, names and marks of citations."""

from __future__ import annotations

import json
from typing import Any

import holdfast
from holdfast.cite import CitingRules
from holdfast.expand.tool import NAME, OTHER_NAME
from holdfast.fitting import fit
from holdfast.fitting.cite_results import expansion_tool
from holdfast.guard.final_turn import FINAL_REPORT_TOOL
from tests.fitting.test_citing import chat, log

RULES = CitingRules(policy="always")
BINDING = "claude-opus-5-5"


def test_the_edit_of_a_citation_names_the_message_that_it_changed() -> None:
    fitted = fit(chat("short", log(200), "short"), citing=RULES)
    [edit] = [edit for edit in fitted.edits if edit.action == "cite"]
    assert (edit.start, edit.stop) == (4, 5)
    assert edit.where.startswith("message 4,")


def test_where_a_client_has_tools_of_both_names_none_is_added() -> None:
    body = chat(log(200))
    body["tools"] += [
        {"type": "function", "function": {"name": name, "description": "mine"}}
        for name in (NAME, OTHER_NAME)
    ]
    assert expansion_tool(holdfast.read(body)) == (OTHER_NAME, True)
    names = [tool.name for tool in holdfast.read(fit(body, citing=RULES).body).tools]
    assert names == ["read_log", NAME, OTHER_NAME]


def marked(marks: tuple[bool, bool]) -> dict[str, Any]:
    """A turn of two long results, of which some carry a cache mark."""
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "read", "input": {}} for n in range(2)]
    results: list[dict[str, Any]] = []
    for n, mark in enumerate(marks):
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": log(200, n)}
        results.append(result | ({"cache_control": {"type": "ephemeral"}} if mark else {}))
    messages = [
        {"role": "user", "content": "What went wrong?"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}


def test_a_mark_that_moves_between_results_stays_where_the_client_put_it() -> None:
    before = fit(marked((False, True)), citing=RULES)
    again = fit(marked((True, False)), citing=RULES, state=before.state)
    results = json.loads(again.body)["messages"][-1]["content"]
    assert ["cache_control" in result for result in results] == [True, False]
    assert all("ref:" in str(result["content"]) for result in results), "still cited"


def ending(*, thinking: bool) -> dict[str, Any]:
    """A request that is full, of an agent with a tool for its report."""
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "A line. " * 2_000}
    schema = {"type": "object"}
    tools = [{"name": name, "input_schema": schema} for name in ("read", FINAL_REPORT_TOOL)]
    thought = {"type": "thinking", "thinking": "Read it.", "signature": "c2ln"}
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4_000,
        "system": "You must look twice. " * 6_000,
        "tools": tools,
        "messages": [
            {"role": "user", "content": "Read the file."},
            {"role": "assistant", "content": [thought, call] if thinking else [call]},
            {"role": "user", "content": [result]},
        ],
    }
    return body | ({"thinking": {"type": "enabled", "budget_tokens": 2_000}} if thinking else {})


def test_a_report_is_demanded_by_a_tool_but_never_with_thinking() -> None:
    """Rule A15: the API refuses a forced tool beside thinking; then the words must do."""
    for thinking in (False, True):
        body = ending(thinking=thinking)
        without = json.loads(json.dumps(body).replace("A line. ", ""))
        fitted = fit(body, limit=holdfast.count(without).tokens + 1_300)
        assert fitted.final
        choice = json.loads(fitted.body).get("tool_choice")
        assert choice == (None if thinking else {"type": "tool", "name": FINAL_REPORT_TOOL})
        assert holdfast.validate(fitted.body) == []


# --- thinking that is bound to what stands before it ---------------------------------------------


def thinking_talk(turns: int) -> dict[str, Any]:
    """A talk with a model that binds its thinking, of turns that are long enough to be folded."""
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        thought = {"type": "thinking", "thinking": f"Thought {n}.", "signature": "c2ln"}
        said = {"type": "text", "text": f"Answer {n}. " * 40}
        messages.append({"role": "user", "content": f"Question {n}. " * 20})
        messages.append({"role": "assistant", "content": [thought, said]})
    messages.append({"role": "user", "content": "And now?"})
    return {
        "model": BINDING,
        "max_tokens": 8_000,
        "thinking": {"type": "adaptive"},
        "messages": messages,
    }


def gone_on(body: dict[str, Any]) -> dict[str, Any]:
    """The same talk after one more answer."""
    thought = {"type": "thinking", "thinking": "Last thought.", "signature": "c2ln"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Now this."}]}
    return {**body, "messages": [*body["messages"], answer, {"role": "user", "content": "Go on."}]}


def thoughts(body: bytes) -> list[str]:
    return [
        block["thinking"]
        for message in json.loads(body)["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if block["type"] == "thinking"
    ]


def test_thinking_behind_a_fold_goes_and_is_an_edit() -> None:
    body = thinking_talk(20)
    fitted = fit(body, limit=holdfast.count(body).tokens // 2)
    assert fitted.state.folds
    assert thoughts(fitted.body) == []
    assert "thinking" in {edit.action for edit in fitted.edits}
    assert holdfast.validate(fitted.body) == []
    assert fitted.tokens == holdfast.count(fitted.body).tokens


def test_thinking_stays_while_nothing_before_it_changes() -> None:
    body = thinking_talk(4)
    before = fit(body, limit=50_000)
    assert len(thoughts(before.body)) == 4
    again = fit(gone_on(body), limit=50_000, state=before.state)
    assert len(thoughts(again.body)) == 5
    assert again.edits == ()


def test_thinking_that_came_after_a_fold_stays_with_the_next_request() -> None:
    """It answered the sent request, not the client's."""
    body = thinking_talk(20)
    limit = holdfast.count(body).tokens * 3 // 4
    before = fit(body, limit=limit)
    again = fit(gone_on(body), limit=limit, state=before.state)
    assert again.state.folds == before.state.folds, "nothing was folded anew"
    assert thoughts(again.body) == ["Last thought."]
