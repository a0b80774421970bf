"""The measure of regret on a handmade conversation: one need, and the cost to fetch it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks.regret.recording import Recording
from benchmarks.regret.report import RULES
from benchmarks.regret.reuse import place_of
from benchmarks.regret.rules import Clearing, clear_tool_uses
from benchmarks.regret.telling import costs, tell, untouched

from holdfast.engine.session_replay import Reuse

LINE = "the harbour master of Port Ellen is Catriona MacTaggart"
LOG = "\n".join(f"{n:05} a quiet day at the harbour, nothing came in" for n in range(600))
LONG = LOG[:12_000] + f"\n{LINE}\n" + LOG[12_000:]


def call(number: int, tool: str = "read") -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps({"path": f"{number}.log"})}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def recording(*messages: dict[str, Any]) -> Recording:
    question = {"role": "user", "content": "How many boats came in?"}
    return Recording(
        {"id": "a/1", "source": "made", "task": "1", "messages": [question, *messages]}
    )


ANSWER = {"role": "assistant", "content": f"I read that {LINE}."}


def test_a_line_that_only_stands_behind_a_citation_is_a_need_and_is_fetched_once() -> None:
    told = recording(call(1), result(1, LONG), ANSWER, {"role": "user", "content": "Sure?"}, ANSWER)
    outcome = tell(told, RULES["always (1,000 characters)"](told, 100_000), 100_000)
    sums = outcome.sums
    assert (sums["cited"], sums["results"], sums["needs"], sums["calls"]) == (1, 1, 1, 1)
    assert sums["next"] == 1
    assert sums["turns"] == 3
    assert sums["requests"] == 4
    assert place_of(outcome.needs[0].run, f"\n{LINE}\n") is not None


def test_what_the_model_sees_is_no_need() -> None:
    shown = "A quiet day at the harbour, nothing came in."
    told = recording(call(1), result(1, LONG), {"role": "assistant", "content": shown})
    assert not tell(told, RULES["always (1,000 characters)"](told, 100_000), 100_000).needs
    told = recording(call(1), result(1, LONG), ANSWER)
    assert not tell(told, RULES["no citing"](told, 100_000), 100_000).needs


def test_its_own_words_and_dashes_are_no_need() -> None:
    words = {"role": "assistant", "content": "I am going to look for it in all of the logs now"}
    told = recording(call(1), result(1, "-" * 5_000), words, {"role": "user", "content": "?"},
                     {**words, "content": words["content"] + " " + "-" * 60})  # fmt: skip
    assert not tell(told, RULES["always (1,000 characters)"](told, 100_000), 100_000).needs


def test_without_fetching_needs_cost_nothing() -> None:
    told = recording(call(1), result(1, LONG), ANSWER)
    rule = RULES["always (1,000 characters)"]
    fetched = tell(told, rule(told, 100_000), 100_000).sums
    unfetched = tell(told, rule(told, 100_000), 100_000, fetches=False).sums
    assert unfetched["needs"] == fetched["needs"] == 1
    assert unfetched["Anthropic"] < fetched["Anthropic"]


def test_cost_by_hand() -> None:
    assert costs(10_000, 0)["Anthropic"] == 12_500
    assert costs(10_000, 8_000)["Anthropic"] == pytest.approx(800 + 2_500)
    assert costs(10_000, 8_000)["OpenAI"] == pytest.approx(800 + 2_000)
    assert costs(2_000, 1_000)["OpenAI"] == 2_000  # so short a prefix is not cached


def test_untouched_conversations_cost_the_same_as_ours_that_change_nothing() -> None:
    told = recording(call(1), result(1, LONG), call(2), result(2, LOG), ANSWER)
    sums = tell(told, RULES["no citing"](told, 100_000), 100_000).sums
    for vendor, cost in untouched(told, 3).items():
        assert sums[vendor] == pytest.approx(cost, abs=30), vendor


def test_clearing_calls_the_tool_again_and_breaks_the_cache_each_time() -> None:
    steps = [m for n in range(6) for m in (call(n), result(n, LONG if not n else LOG))]
    told = recording(*steps, ANSWER)
    sums = tell(told, Clearing(told, clear_tool_uses(30_000)), 30_000).sums
    assert sums["needs"] == sums["calls"] == 1
    assert sums["cited"] == 4  # three of the six recorded, and one more as the seventh comes
    assert sums["rewrites"] == 4


def test_runs_are_found_through_json_and_blanks() -> None:
    reuse = Reuse([["say: the  harbour\nmaster of Port Ellen"]])
    assert reuse.inside([json.dumps({"a": "the harbour\nmaster of Port Ellen is …"})])
    assert not reuse.inside(["the harbour mistress of Port Ellen"])


def test_a_conversation_that_cannot_fit_ends_where_it_is_refused() -> None:
    told = recording(ANSWER)
    sums = tell(told, RULES["no citing"](told, 5), 5).sums
    assert sums["refused"] == 1
    assert sums["turns"] == 0
