"""Near the high-water mark the older results give way to citations together, before any fold."""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.fitting.fold_history import RECENT
from holdfast.trim import mark
from tests.engine.test_rebuild import follow
from tests.fitting.test_citing import DIALECTS, in_dialect, log, refs_in, tool_names
from tests.fitting.test_tool_offers import parts

LIMIT = 12_000
OPTIONS = FitOptions(cites=True, opens=True, limit=LIMIT, rules=CitingRules(tools=(("*", 10_000),)))
"""A result may have this many tokens, so that none is cited when it arrives."""


def agent(results: list[str], **calls: dict[str, Any]) -> dict[str, Any]:
    """A conversation of one question and a call for each result; `calls` are those of some."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why do the payments fail?"}]
    for n, result in enumerate(results):
        call = calls.get(f"n{n}", {"name": "read_log", "arguments": {"path": f"/var/log/{n}.log"}})
        function = {**call, "arguments": json.dumps(call["arguments"])}
        use = {"id": f"c{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [use]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": result})
    tool = {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
    return {"model": "gpt-4o", "messages": messages, "tools": [tool]}


def turns(dialect: str, results: list[str], **changes: Any) -> list[Fitted]:
    """Every request of an agent, with one result more each time."""
    state: FitState | None = None
    fitted = []
    for n in range(len(results) + 1):
        options = msgspec.structs.replace(OPTIONS, dialect=dialect, **changes)
        body = in_dialect(agent(results[:n]), dialect)
        fitted.append(fit_request(body, options, state=state))
        state = fitted[-1].state
    return fitted


@functools.cache
def of_an_agent(dialect: str) -> list[Fitted]:
    return turns(dialect, RESULTS)


def actions(fitted: Fitted) -> set[str]:
    return {edit.action for edit in fitted.edits}


RESULTS = [log(45, seed=n) for n in range(28)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_older_results_give_way_in_one_step_and_the_last_ones_stay(dialect: str) -> None:
    requests = of_an_agent(dialect)
    batches = [n for n, turn in enumerate(requests) if "cite" in actions(turn)]
    assert batches
    first = batches[0]
    assert actions(requests[first]) == {"cite"}
    assert len(requests[first].edits) == first - RECENT
    originals = {content.ref_id for content in requests[first].contents}
    assert originals == set(refs_in(requests[first].body))
    for n in range(first - RECENT, first):
        assert json.dumps(RESULTS[n])[1:-1].encode() in requests[first].body
    assert requests[first].tokens <= 0.65 * LIMIT
    for turn in requests:
        assert holdfast.validate(turn.body, dialect) == []
        assert turn.tokens <= LIMIT


@pytest.mark.parametrize("dialect", DIALECTS)
def test_between_the_steps_every_request_begins_with_the_one_before(dialect: str) -> None:
    requests = of_an_agent(dialect)
    for before, turn in itertools.pairwise(requests):
        if actions(turn) <= {"offer"}:
            around, messages = parts(turn.body, dialect)
            assert around == parts(before.body, dialect)[0]
            sent = parts(before.body, dialect)[1]
            assert messages[: len(sent)] == sent


def test_a_step_that_would_gain_little_is_left_out() -> None:
    """Results that a citation hardly shortens: the oldest are folded, and none is cited."""
    short = [log(12, seed=n) for n in range(90)]
    rules = CitingRules(threshold=300, tools=(("*", 10_000),))
    requests = turns("openai-chat", short, rules=rules)
    steps = [actions(turn) for turn in requests if actions(turn) - {"offer"}]
    assert steps
    assert all("fold" in step for step in steps)


def test_what_was_read_of_a_file_that_is_being_edited_stays() -> None:
    reads = {"name": "read_log", "arguments": {"path": "src/pay.py"}}
    edits = {"name": "edit_file", "arguments": {"file_path": "/repo/src/pay.py", "new": "x"}}
    results = RESULTS[:20]
    state = fit_request(agent(results[:19], n2=reads, n14=edits), OPTIONS).state
    turn = fit_request(agent(results, n2=reads, n14=edits), OPTIONS, state=state)
    texts = [m["content"] for m in json.loads(turn.body)["messages"] if m["role"] == "tool"]
    cited = [text != result for text, result in zip(texts, results, strict=True)]
    assert cited == [n < 20 - RECENT and n != 2 for n in range(20)]


def test_nothing_is_cited_where_citing_is_off_or_the_rules_say_never() -> None:
    never = CitingRules(tools=(("read_log", "never"),))
    for changes in ({"cites": False}, {"rules": never}):
        requests = turns("openai-chat", RESULTS, **changes)
        done = set().union(*map(actions, requests))
        assert "cite" not in done
        assert "fold" in done


def test_what_is_marked_stays() -> None:
    body = in_dialect(agent(RESULTS), "openai-chat")
    conversation = holdfast.read(body, "openai-chat")
    mark(conversation.messages[2])
    turn = fit_request(conversation, OPTIONS)
    assert RESULTS[0] in {m.get("content") for m in json.loads(turn.body)["messages"]}
    assert tool_names(turn.body, "openai-chat")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("restarts", [False, True], ids=["goes on", "restarts"])
def test_a_batch_and_all_that_follows_can_be_rebuilt(dialect: str, restarts: bool) -> None:
    before = next(n for n, turn in enumerate(of_an_agent(dialect)) if "cite" in actions(turn)) - 1
    bodies = [in_dialect(agent(RESULTS[:n]), dialect) for n in range(before, before + 4)]
    options = msgspec.structs.replace(OPTIONS, dialect=dialect)
    fitted = follow(bodies, dialect, options, restarts=restarts)
    assert [turn.body for turn in fitted] == [
        turn.body for turn in follow(bodies, dialect, options)
    ]
    assert len(fitted) == len(bodies)
    assert any("cite" in actions(turn) for turn in fitted)
