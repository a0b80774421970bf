from __future__ import annotations

import pytest

from holdfast.errors import BudgetExceededError, ContextOptimizationError
from holdfast.guard import (
    OVER_LIMIT_WARNING,
    ContextGuard,
    ContextGuardBlockedEntry,
    ContextGuardEvaluation,
    ContextGuardEvent,
    ContextLogEntry,
    OverflowMode,
    TargetContextConfig,
)
from tests.guard.harness import MODEL, PROVIDER, Told, guard

# Counters and projections: 002-04 to 002-08, 002-14, 002-51, C18


def test_a_projection_is_the_sum_of_the_four_counters() -> None:
    it = guard(1000, current_tokens=1)
    it.add_pending(20)
    it.reserve_tool_output("300")
    it.set_schema(400)
    counters = it.counters
    assert (counters.current, counters.pending, counters.new, counters.schema) == (1, 20, 300, 400)
    assert it.evaluate() == ContextGuardEvaluation((), 721)
    assert it.evaluate(79).projected_tokens == 800


def test_a_commit_moves_everything_into_current_and_loses_nothing() -> None:
    it = guard(1000, current_tokens=1)
    it.add_pending(20)
    it.reserve_tool_output("300")
    it.set_schema(400)
    before = it.evaluate()
    it.commit()
    counters = it.counters
    assert (counters.current, counters.pending, counters.new) == (321, 0, 0)
    assert it.evaluate() == before
    it.commit()
    assert it.evaluate() == before


def test_reported_usage_wins_over_estimates_and_takes_the_answer_in() -> None:
    it = guard(1000, current_tokens=100)
    it.set_schema(50)
    it.commit()
    it.observe_usage(180, 20)
    assert it.evaluate().projected_tokens == 200


def test_what_was_reserved_while_the_report_was_on_its_way_stays_on_top() -> None:
    it = guard(1000, current_tokens=100)
    it.commit()
    it.reserve_tool_output("30")
    it.add_pending(4)
    it.observe_usage(200)
    assert it.evaluate().projected_tokens == 234


def test_schema_is_projected_until_reported_and_then_only_its_difference() -> None:
    it = guard(1000, current_tokens=100)
    it.set_schema(50)
    assert it.evaluate().projected_tokens == 150
    it.commit()
    assert it.evaluate().projected_tokens == 150
    it.observe_usage(160)
    assert it.evaluate().projected_tokens == 160
    it.set_schema(70)
    assert it.evaluate().projected_tokens == 180
    it.set_schema(10)
    assert it.evaluate().projected_tokens == 120


def test_a_report_before_any_commit_includes_no_schema() -> None:
    it = guard(1000)
    it.set_schema(50)
    it.observe_usage(100)
    assert it.evaluate().projected_tokens == 150


def test_a_schema_that_was_estimated_too_high_never_makes_a_projection_negative() -> None:
    it = guard(1000)
    it.set_schema(500)
    it.commit()
    it.observe_usage(30)
    it.set_schema(0)
    assert it.evaluate().projected_tokens == 0


def test_the_conversation_may_shrink_between_turns_only() -> None:
    it = guard(1000, current_tokens=900)
    it.reserve_tool_output("50")
    with pytest.raises(ContextOptimizationError, match=r"50 tokens not yet committed.*commit\(\)"):
        it.rebase(100)
    it.commit()
    it.rebase(100)
    assert it.evaluate().projected_tokens == 100


def test_a_rebased_conversation_is_counted_with_its_whole_schema() -> None:
    it = guard(1000, current_tokens=100)
    it.set_schema(50)
    it.commit()
    it.observe_usage(500)
    it.rebase(200)
    assert it.evaluate().projected_tokens == 250


@pytest.mark.parametrize("act", ["add_pending", "set_schema", "observe_usage", "rebase"])
def test_tokens_below_zero_are_refused(act: str) -> None:
    it = guard(1000)
    with pytest.raises(ValueError, match="below zero"):
        getattr(it, act)(-1)


# Evaluation at the limit: 002-02, 002-03, 002-15, C42


@pytest.mark.parametrize(("projected", "blocked"), [(999, 0), (1000, 0), (1001, 1)])
def test_a_request_that_fills_the_limit_passes_and_one_more_token_does_not(
    projected: int, blocked: int
) -> None:
    it = guard(1000, current_tokens=projected)
    assert len(it.evaluate().blocked) == blocked
    assert it.evaluate_for(PROVIDER, MODEL) == ("final" if blocked else "ok")


def test_a_limit_of_zero_blocks_even_an_empty_request() -> None:
    it = guard(0)
    assert len(it.evaluate().blocked) == 1
    assert it.evaluate_for(PROVIDER, MODEL) == "final"
    assert not it.reserve_tool_output("0").ok


def test_a_blocked_entry_has_all_the_numbers() -> None:
    it = ContextGuard([TargetContextConfig("openai", "gpt-4o", 128_000)], current_tokens=111_361)
    assert it.evaluate().blocked == (
        ContextGuardBlockedEntry(
            provider="openai",
            model="gpt-4o",
            context_window=128_000,
            buffer_tokens=256,
            max_output_tokens=16_384,
            limit=111_360,
            projected=111_361,
        ),
    )


# Several targets: 002-16 to 002-19, 002-39, C19


@pytest.mark.parametrize(
    ("current", "answers"),
    [
        (100, ["ok", "ok", "ok"]),
        (101, ["skip", "ok", "ok"]),
        (201, ["skip", "skip", "ok"]),
        (300, ["skip", "skip", "ok"]),
        (301, ["final", "final", "final"]),
    ],
)
def test_a_blocked_target_is_skipped_until_all_are_blocked(
    current: int, answers: list[str]
) -> None:
    it = guard(100, 200, 300, current_tokens=current)
    assert [it.evaluate_for(t.provider, t.model) for t in it.targets] == answers
    assert len(it.evaluate().blocked) == sum(answer != "ok" for answer in answers)


def test_a_skipped_target_is_told_and_ends_nothing() -> None:
    told = Told()
    it = guard(100, 200, current_tokens=150, listener=told)
    assert it.preflight(PROVIDER, MODEL) == "skip"
    assert it.preflight(PROVIDER, f"{MODEL}-1") == "ok"
    assert it.forced_final_turn_reason is None
    (event,) = told.of(ContextGuardEvent)
    assert (event.model, event.trigger, event.outcome) == (
        MODEL,
        "turn_preflight",
        "skipped_provider",
    )
    (entry,) = told.of(ContextLogEntry)
    assert entry.severity == "warning"


def test_after_the_shrink_only_the_target_that_fits_takes_the_final_turn() -> None:
    it = guard(100, 200, current_tokens=150)
    it.set_schema(60, final_tokens=10)
    assert it.preflight(PROVIDER, MODEL) == "skip"
    assert it.preflight(PROVIDER, f"{MODEL}-1") == "final"


# The forced final turn: 002-18, 002-20 to 002-23, 002-48, 002-52, C16, X07


def test_final_turn_shrinks_the_schema_and_evaluates_again() -> None:
    it = guard(1000, current_tokens=900)
    it.set_schema(200, final_tokens=50)
    assert it.preflight(PROVIDER, MODEL) == "final"
    assert it.forced_final_turn_reason == "context"
    assert it.evaluate() == ContextGuardEvaluation((), 950)


def test_schema_set_inside_a_forced_final_turn_is_that_of_its_tools() -> None:
    it = guard(1000, current_tokens=900)
    it.set_schema(200, final_tokens=50)
    it.enforce_final_turn("turn_preflight")
    it.set_schema(200, final_tokens=40)
    assert it.counters.schema == 40


def test_final_turn_is_forced_and_told_once() -> None:
    told = Told()
    it = guard(1000, current_tokens=900, listener=told)
    it.set_schema(200, final_tokens=50)
    for _ in range(3):
        it.enforce_final_turn("turn_preflight")
    assert [e.outcome for e in told.of(ContextGuardEvent)] == ["forced_final"]
    assert [e.message for e in told.of(ContextLogEntry)] == [OVER_LIMIT_WARNING]


def test_a_forced_final_turn_holds_for_the_requests_that_follow() -> None:
    it = guard(1000)
    assert it.preflight(PROVIDER, MODEL) == "ok"
    assert not it.reserve_tool_output("1001").ok
    assert it.preflight(PROVIDER, MODEL) == "final"


def test_enforcement_keeps_what_tools_have_reserved() -> None:
    it = guard(1000)
    it.set_schema(300, final_tokens=100)
    assert it.reserve_tool_output("600").ok
    assert not it.reserve_tool_output("600").ok
    assert (it.counters.new, it.counters.schema) == (600, 100)


def test_best_effort_goes_on_inside_the_forced_final_turn_with_a_warning() -> None:
    told = Told()
    it = guard(1000, current_tokens=2000, on_overflow="best_effort", listener=told)
    it.set_schema(200, final_tokens=50)
    assert it.preflight(PROVIDER, MODEL) == "final"
    assert it.forced_final_turn_reason == "context"
    warnings = told.of(ContextLogEntry)
    assert [(w.severity, w.message, w.projected_tokens) for w in warnings] == [
        ("warning", OVER_LIMIT_WARNING, 2200),
        ("warning", OVER_LIMIT_WARNING, 2050),
    ]


def test_force_final_raises_rather_than_exceed_when_even_the_final_turn_does_not_fit() -> None:
    told = Told()
    it = guard(1000, current_tokens=2000, listener=told)
    it.set_schema(200, final_tokens=50)
    with pytest.raises(BudgetExceededError, match=r"2,050 tokens, 1,050 more .*best_effort"):
        it.preflight(PROVIDER, MODEL)
    assert it.forced_final_turn_reason == "context"
    assert [w.message for w in told.of(ContextLogEntry)] == [OVER_LIMIT_WARNING] * 2


def test_before_a_tool_the_final_turn_is_forced_without_an_error() -> None:
    it = guard(1000, current_tokens=2000)
    assert len(it.enforce_final_turn("tool_preflight").blocked) == 1
    assert it.forced_final_turn_reason == "context"


def test_raise_gives_an_error_with_the_numbers_and_what_to_do_and_forces_nothing() -> None:
    told = Told()
    it = guard(1000, 500, current_tokens=1200, on_overflow="raise", listener=told)
    with pytest.raises(BudgetExceededError) as caught:
        it.preflight(PROVIDER, MODEL)
    error = caught.value
    assert (error.limit, error.planned, error.where) == (1000, 1200, "openai:gpt-4o")
    assert "1,200 tokens, 200 more than the limit of 1,000" in error.what
    assert error.fix
    assert it.forced_final_turn_reason is None
    assert told == []


@pytest.mark.parametrize("mode", ["raise", "force_final", "best_effort"])
def test_what_fits_is_never_stopped(mode: OverflowMode) -> None:
    it = guard(1000, current_tokens=1000, on_overflow=mode)
    assert it.preflight(PROVIDER, MODEL) == "ok"


def test_a_caller_may_force_the_final_turn_before_it_is_needed() -> None:
    told = Told()
    it = guard(1000, current_tokens=10, listener=told)
    assert it.enforce_final_turn("turn_preflight").blocked == ()
    (event,) = told.of(ContextGuardEvent)
    assert event.remaining_tokens == 990


def test_a_failing_listener_changes_nothing_but_is_mentioned() -> None:
    def broken(message: object) -> None:
        raise RuntimeError(str(message))

    it = guard(1000, current_tokens=900, listener=broken)
    with pytest.warns(UserWarning, match="listener of the context guard failed: RuntimeError"):
        reservation = it.reserve_tool_output("600")
    assert not reservation.ok
    assert it.forced_final_turn_reason == "context"


def test_a_listener_may_use_the_guard() -> None:
    seen: list[int] = []

    def look(_: object) -> None:
        seen.append(guards[0].evaluate().projected_tokens)

    guards = [guard(1000, current_tokens=900, listener=look)]
    guards[0].reserve_tool_output("600")
    assert set(seen) == {900}
