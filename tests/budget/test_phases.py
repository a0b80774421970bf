"""Phases by percent, ceilings inside ceilings, one margin (C4, C5, C37)."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.budget import TOKEN_BUDGET, Ceilings, PhaseBudget, phase_budget
from holdfast.errors import SettingsError
from holdfast.tokens.limits import ModelContextLimits, input_limit

tokens = st.integers(0, 2_000_000)
shares = st.integers(0, 1000).map(lambda n: n / 1000)


def test_nothing_is_kept_back_unless_asked_for() -> None:
    budget = PhaseBudget(1000)
    assert (budget.reserved_output, budget.safety_margin, budget.used_tokens) == (0, 0.0, 0)
    assert budget.effective_budget() == 1000


def test_output_goes_first_and_the_margin_from_the_rest() -> None:
    assert PhaseBudget(1000, reserved_output=200, safety_margin=0.1).effective_budget() == 720


def test_margin_is_rounded_up_and_exact() -> None:
    assert PhaseBudget(101, safety_margin=0.1).effective_budget() == 90
    assert PhaseBudget(1000, safety_margin=0.1).effective_budget() == 900


@pytest.mark.parametrize(
    ("more", "fits"), [(0, True), (399, True), (400, True), (401, False), (10**400, False)]
)
def test_tokens_fit_up_to_equality(more: int, *, fits: bool) -> None:
    budget = PhaseBudget(1000, used_tokens=600)
    assert budget.can_fit(more) is fits
    assert budget.allocate(more) is fits
    assert budget.used_tokens == (600 + more if fits else 600)


@pytest.mark.parametrize("more", [-1, True, 1.5, float("nan"), "5", None])
def test_what_is_no_count_fits_nowhere(more: Any) -> None:
    budget = PhaseBudget(1000, used_tokens=600)
    assert not budget.can_fit(more)
    assert not budget.allocate(more)
    assert budget.used_tokens == 600


def test_an_empty_budget_takes_nothing_but_nothing() -> None:
    assert not PhaseBudget(0).can_fit(1)
    assert PhaseBudget(0).allocate(0)
    assert PhaseBudget(100, reserved_output=500).effective_budget() == 0
    assert PhaseBudget(100, safety_margin=1.0).effective_budget() == 0


def test_budget_that_is_overdrawn_has_nothing_left() -> None:
    budget = PhaseBudget(100, used_tokens=500)
    assert budget.remaining == 0
    assert not budget.can_fit(0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"total_budget": -1},
        {"total_budget": True},
        {"total_budget": 10, "reserved_output": -1},
        {"total_budget": 10, "used_tokens": -1},
        {"total_budget": 10, "safety_margin": -0.1},
        {"total_budget": 10, "safety_margin": 1.1},
        {"total_budget": 10, "safety_margin": float("nan")},
        {"total_budget": 10, "safety_margin": True},
    ],
    ids=str,
)
def test_budget_of_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        PhaseBudget(**wrong)


@given(tokens, tokens, shares, st.lists(st.integers(-10, 500_000)))
def test_allocation_never_exceeds_and_refusal_changes_nothing(
    total: int, output: int, margin: float, asked: list[int]
) -> None:
    budget = PhaseBudget(total, output, margin)
    taken = 0
    for more in asked:
        could = budget.can_fit(more)
        assert budget.allocate(more) is could
        taken += more if could else 0
        assert budget.used_tokens == taken <= budget.effective_budget()
        assert budget.remaining == budget.effective_budget() - taken


@given(tokens, tokens, shares)
def test_effective_budget_is_the_margin_off_what_output_leaves(
    total: int, output: int, margin: float
) -> None:
    usable = max(total - output, 0)
    kept = math.ceil(Fraction(str(margin)) * usable)
    assert PhaseBudget(total, output, margin).effective_budget() == usable - kept


@pytest.mark.usefixtures("hasty_threads")
def test_threads_together_get_no_more_than_there_is() -> None:
    budget, together = PhaseBudget(1000), threading.Barrier(8)

    def take(_: int) -> int:
        together.wait()
        return sum(7 for _ in range(100) if budget.allocate(7))

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(take, range(8)))
    assert taken == budget.used_tokens == 994


@pytest.mark.parametrize(
    ("context", "percent", "tokens"),
    [(200_000, 0.8, 160_000), (100, 0.29, 29), (101, 0.5, 50), (0, 0.8, 0), (7, 0, 0), (7, 1, 7)],
)
def test_phase_is_its_share_of_the_effective_context_rounded_down(
    context: int, percent: float, tokens: int
) -> None:
    assert phase_budget(context, percent) == tokens


@given(tokens, shares)
def test_phase_is_exactly_the_floor_of_its_share(context: int, percent: float) -> None:
    assert phase_budget(context, percent) == math.floor(Fraction(str(percent)) * context)


@pytest.mark.parametrize(
    ("context", "percent"), [(-1, 0.5), (10, -0.1), (10, 80), (10, float("nan"))]
)
def test_share_of_nonsense_is_refused(context: int, percent: float) -> None:
    with pytest.raises(SettingsError):
        phase_budget(context, percent)


@given(tokens, tokens, tokens)
def test_the_smallest_ceiling_holds(guard: int, phase: int, target: int) -> None:
    ceilings = Ceilings(guard_limit=guard, phase_budget=phase, turn_target=target)
    assert ceilings.effective == min(guard, phase, target)
    assert getattr(ceilings, ceilings.binding) == ceilings.effective


@given(st.tuples(tokens, tokens, tokens), st.integers(0, 2), tokens)
def test_lowering_one_ceiling_never_raises_the_effective_one(
    limits: tuple[int, int, int], which: int, lower: int
) -> None:
    names = ("guard_limit", "phase_budget", "turn_target")
    before = dict(zip(names, limits, strict=True))
    after = {**before, names[which]: min(before[names[which]], lower)}
    assert Ceilings(**after).effective <= Ceilings(**before).effective


def test_ceilings_that_are_not_given_do_not_hold() -> None:
    ceilings = Ceilings(guard_limit=9000, turn_target=TOKEN_BUDGET["total"])
    assert (ceilings.effective, ceilings.binding) == (3000, "turn_target")
    with pytest.raises(SettingsError, match="no ceiling"):
        Ceilings()
    with pytest.raises(SettingsError):
        Ceilings(guard_limit=-1)


def test_a_ceiling_of_zero_blocks() -> None:
    assert Ceilings(guard_limit=0, turn_target=3000).effective == 0


def test_margin_is_taken_once_however_deep_the_ceilings() -> None:
    limits = ModelContextLimits("openai", "gpt-4o", 100_000, 16_000)
    guard = input_limit(limits, margin=0.1)
    phase = PhaseBudget(phase_budget(limits.input_budget, 1.0), safety_margin=0.1)
    assert Ceilings(guard_limit=guard, phase_budget=phase.effective_budget()).effective == 90_000


def test_turn_has_the_sections_of_the_seed() -> None:
    assert TOKEN_BUDGET == {
        "total": 3000,
        "header": 600,
        "history": 1000,
        "facts": 800,
        "summaries": 600,
    }
    assert sum(TOKEN_BUDGET.values()) == 2 * TOKEN_BUDGET["total"]
    with pytest.raises(TypeError):
        TOKEN_BUDGET["total"] = 9000  # type: ignore[index]
