"""Budgets of phases, and graceful degradation when a phase overflows.

A phase gets a share of the context that overhead and output leave; `PhaseBudget` subtracts the
safety margin once. On overflow all items go down the same ladder: key points, headlines, truncated,
then the lightest are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from holdfast.allocate.fidelity import Rung
from holdfast.allocate.item import ContentItem
from holdfast.allocate.manager import AllocationResult, ContextBudgetManager
from holdfast.allocate.summary_requests import Progress
from holdfast.budget import PhaseBudget, phase_budget
from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.tokens.limits import ModelContextRegistry, get_effective_context, output_reserve

PHASES: Mapping[str, Callable[[Settings], float]] = MappingProxyType(
    {
        "analysis": lambda settings: settings.analysis_budget_percent,
        "refinement": lambda settings: settings.analysis_budget_percent,
        "synthesis": lambda settings: settings.synthesis_budget_percent,
    }
)
"""The share of each phase. A refinement is an analysis that continues an earlier one."""


def budget_of_phase(
    phase: str,
    provider_id: str,
    settings: Settings,
    *,
    registry: ModelContextRegistry | None = None,
) -> PhaseBudget:
    """Return the tokens that a phase may send to a model."""
    registry = registry or ModelContextRegistry(settings)
    limits = registry.resolve(registry.normalize_provider_id(provider_id))
    effective = get_effective_context(provider_id, registry) - output_reserve(limits)
    return budget_of_context(phase, effective, settings)


def budget_of_context(
    phase: str, effective: int, settings: Settings, *, around: int = 0
) -> PhaseBudget:
    """Return the same for a known context size; `around` are the tokens of our own text."""
    if phase not in PHASES:
        raise SettingsError(
            "there is no such phase", where="phase", fix=f"Use one of {', '.join(PHASES)}."
        )
    return PhaseBudget(
        phase_budget(max(effective, 0), PHASES[phase](settings)),
        reserved_output=around,
        safety_margin=settings.token_safety_margin,
    )


_STEPS = (Rung.KEY_POINTS, Rung.HEADLINE, Rung.TRUNCATED, Rung.DROPPED)


class DegradedResult(AllocationResult, frozen=True, kw_only=True):
    """A prompt that fits, with the steps of degradation it took."""

    steps: tuple[Rung, ...] = ()
    """The steps taken; all items fit after the last one."""


class GracefulDegradationHandler:
    """Handles an overflow by returning a prompt that fits."""

    def __init__(self, manager: ContextBudgetManager) -> None:
        self.manager = manager

    async def handle_overflow(
        self,
        items: Sequence[ContentItem],
        budget: PhaseBudget | int,
        phase: str,
        *,
        context: str = "",
        progress: Progress | None = None,
    ) -> DegradedResult:
        """Lower the levels of all items until they fit.

        Raises:
            AllocationError: if the required minimum does not fit; the message says what would help.
        """
        result = await self.manager.allocate_budget(
            items, budget, "degradation", phase=phase, context=context, progress=progress
        )
        levels = {record.level for record in result.fidelity_metadata.values()}
        lowest = max((n for n, step in enumerate(_STEPS) if step in levels), default=-1)
        fields = {name: getattr(result, name) for name in result.__struct_fields__}
        return DegradedResult(**fields, steps=_STEPS[: lowest + 1])
