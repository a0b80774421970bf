"""Degradation: all go down one ladder together (000-61 to 66, 101, C9, C10)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.allocate import (
    ContentItem,
    ContextBudgetManager,
    DegradedResult,
    GracefulDegradationHandler,
    Rung,
    budget_of_phase,
)
from holdfast.budget import PhaseBudget
from holdfast.errors import AllocationError, SettingsError
from holdfast.settings import ModelLimits, Settings
from tests.allocate.made import item
from tests.allocate.summarisers import Honest, count_words

ITEMS = [item(f"s{n}", 400, n / 10) for n in range(6)]


def degraded(
    budget: PhaseBudget | int, items: list[ContentItem] = ITEMS, **changed: Any
) -> DegradedResult:
    manager = ContextBudgetManager(Settings(**changed), Honest(), count=count_words)
    handler = GracefulDegradationHandler(manager)
    return asyncio.run(handler.handle_overflow(items, budget, "analysis"))


@pytest.mark.parametrize(
    ("budget", "last"),
    [
        (700, Rung.KEY_POINTS),
        (320, Rung.HEADLINE),
        (170, Rung.TRUNCATED),
        (90, Rung.DROPPED),
    ],
)
def test_each_step_is_taken_only_if_the_one_before_does_not_fit(budget: int, last: Rung) -> None:
    result = degraded(budget)
    steps = [Rung.KEY_POINTS, Rung.HEADLINE, Rung.TRUNCATED, Rung.DROPPED]
    assert list(result.steps) == steps[: steps.index(last) + 1]
    assert count_words(result.text) == result.tokens <= budget
    assert all(key.startswith("analysis:") for key in result.fidelity_metadata)


def test_the_lightest_are_dropped_and_the_minimum_stays() -> None:
    result = degraded(90, min_items_per_phase=3)
    assert result.dropped_ids == ["s0", "s1", "s2"]
    with pytest.raises(AllocationError, match="6 items must stay"):
        degraded(90, allow_content_dropping=False)
    with pytest.raises(AllocationError, match="3 items must stay and need at least"):
        degraded(60, min_items_per_phase=3)


def test_without_truncation_headlines_are_the_last_form() -> None:
    result = degraded(170, summarization_truncate_fallback=False, min_items_per_phase=1)
    assert {record.level for record in result.fidelity_metadata.values()} == {
        Rung.HEADLINE,
        Rung.DROPPED,
    }


def test_what_is_too_short_to_be_summarised_stays_whole() -> None:
    result = degraded(500, [item("short", 12), item("long", 900)])
    assert result.fidelity_metadata["analysis:short"].level is Rung.RAW


def test_artificially_low_limits_of_a_model_degrade_gracefully() -> None:
    """000-101: the whole way from the settings of a model to a prompt that fits."""
    low = {"claude:haiku": ModelLimits(context_window=600, cli_overhead=200)}
    config = Settings(model_context_overrides=low, token_safety_margin=0.5)
    budget = budget_of_phase("analysis", "[cli]claude:haiku", config)
    assert budget.effective_budget() == 160  # 200 are the program's own; 80 %; half as margin
    result = degraded(budget, model_context_overrides=low)
    assert result.tokens <= 160
    assert budget.used_tokens == result.tokens
    assert len(result.parts) >= 3


# --- phases --------------------------------------------------------------------------------------


def test_phases_take_their_share_of_what_overhead_and_output_leave() -> None:
    config = Settings(token_safety_margin=0.0)
    assert budget_of_phase("analysis", "[cli]claude:sonnet", config).total_budget == 112_000
    assert budget_of_phase("synthesis", "[cli]claude:sonnet", config).total_budget == 119_000
    assert budget_of_phase("refinement", "[cli]claude:sonnet", config).total_budget == 112_000
    reserved = {"claude:sonnet": ModelLimits(output_reserved=40_000)}
    other = Settings(token_safety_margin=0.1, model_context_overrides=reserved)
    assert budget_of_phase("analysis", "[cli]claude:sonnet", other).effective_budget() == 72_000


def test_a_phase_that_is_none_is_refused_with_the_names() -> None:
    with pytest.raises(SettingsError, match="analysis, refinement, synthesis"):
        budget_of_phase("planning", "openai:gpt-5", Settings())
