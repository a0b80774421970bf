"""The last turn of a session, its tools and its words: 002-22, 002-24 to 002-27."""

from __future__ import annotations

import pytest

from holdfast.guard import FinalReport, final_turn_guidance, meta_guidance
from tests.guard.harness import guard

TOOLS = ("search", "agent__final_report", "cite", "fetch")


def test_an_ordinary_turn_offers_every_tool_in_its_order() -> None:
    assert guard(1000).tools_for_turn(TOOLS) == TOOLS


def test_a_forced_final_turn_offers_the_final_report_and_the_allowed_extra_tools() -> None:
    it = guard(1000, extra_tools=("cite",))
    it.enforce_final_turn("turn_preflight")
    assert it.tools_for_turn(TOOLS) == ("agent__final_report", "cite")


def test_a_locked_report_removes_the_extra_tools_even_in_an_ordinary_turn() -> None:
    it = guard(1000, extra_tools=("cite",))
    locked = FinalReport(required_meta=frozenset({"sources"})).with_report()
    assert it.tools_for_turn(TOOLS, locked) == ("agent__final_report",)
    it.enforce_final_turn("turn_preflight")
    assert it.tools_for_turn(TOOLS, locked) == ("agent__final_report",)


def test_final_tools_of_another_name_are_offered_and_internal() -> None:
    it = guard(1000, final_tools=("done", "give_up"))
    it.enforce_final_turn("turn_preflight")
    assert it.tools_for_turn(("done", "search", "give_up")) == ("done", "give_up")
    it.reserve_tool_output("1001")
    assert it.can_execute_tool("give_up")


@pytest.mark.parametrize(
    ("report", "ready", "locked"),
    [
        (FinalReport(), False, False),
        (FinalReport().with_report(), True, False),
        (FinalReport(required_meta=frozenset("ab")), False, False),
        (FinalReport(required_meta=frozenset("ab")).with_meta("a", "b"), False, False),
        (FinalReport(required_meta=frozenset("ab")).with_report(), False, True),
        (FinalReport(required_meta=frozenset("ab")).with_report().with_meta("a"), False, True),
        (FinalReport(required_meta=frozenset("ab")).with_meta("a", "b").with_report(), True, False),
    ],
)
def test_the_session_is_ready_with_report_and_meta_and_locked_between_them(
    report: FinalReport, ready: bool, locked: bool
) -> None:
    assert (report.ready, report.locked) == (ready, locked)


def test_a_forced_final_turn_does_not_make_a_session_ready() -> None:
    it = guard(1000)
    it.enforce_final_turn("turn_preflight")
    assert not FinalReport(required_meta=frozenset({"sources"})).with_report().ready


def test_meta_that_arrives_unlocks_the_report_and_ends_the_session() -> None:
    locked = FinalReport(required_meta=frozenset({"sources"})).with_report()
    done = locked.with_report().with_meta("sources")
    assert done.ready
    assert not done.locked


def test_the_model_is_told_nothing_in_an_ordinary_turn() -> None:
    assert guard(1000).guidance() == ""


def test_the_model_is_told_to_finish_in_a_forced_final_turn() -> None:
    it = guard(1000, extra_tools=("cite",))
    it.enforce_final_turn("turn_preflight")
    text = it.guidance(FinalReport(required_meta=frozenset({"sources"})))
    for part in ("final turn", "`agent__final_report`", "only `cite`", "META: `sources`"):
        assert part in text


def test_the_model_is_asked_for_meta_alone_while_the_report_is_locked() -> None:
    it = guard(1000)
    it.enforce_final_turn("turn_preflight")
    text = it.guidance(FinalReport(required_meta=frozenset("ab")).with_report())
    assert text == meta_guidance("ab")
    assert "`a` and `b`, and nothing else" in text
    assert "agent__final_report" not in text


@pytest.mark.parametrize("required", [frozenset[str](), frozenset({"sources"})])
def test_nothing_more_is_asked_once_report_and_meta_are_complete(required: frozenset[str]) -> None:
    it = guard(1000)
    it.enforce_final_turn("turn_preflight")
    report = FinalReport(required_meta=required).with_meta(*required)
    assert "final report now" in it.guidance(report)
    assert it.guidance(report.with_report()) == ""


def test_guidance_without_a_final_tool_asks_for_the_report_itself() -> None:
    assert "Give your final report now, from" in final_turn_guidance(())
