"""The budget of a phase: a share of what a model can take, less overhead, output and the margin.

phases: beside manager. The share is taken of the context that overhead and output leave (C5), and
the margin once, by the `PhaseBudget` (C4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

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
"""The share of each phase. A refinement is an analysis that goes on from an earlier one."""


def budget_of_phase(
    phase: str,
    provider_id: str,
    settings: Settings,
    *,
    registry: ModelContextRegistry | None = None,
) -> PhaseBudget:
    """The tokens that a phase may put before a model."""
    registry = registry or ModelContextRegistry(settings)
    limits = registry.resolve(registry.normalize_provider_id(provider_id))
    effective = get_effective_context(provider_id, registry) - output_reserve(limits)
    return budget_of_context(phase, effective, settings)


def budget_of_context(
    phase: str, effective: int, settings: Settings, *, around: int = 0
) -> PhaseBudget:
    """The same of a context that overhead and output left; `around` are tokens of our own words."""
    if phase not in PHASES:
        raise SettingsError(
            "there is no such phase", where="phase", fix=f"Use one of {', '.join(PHASES)}."
        )
    return PhaseBudget(
        phase_budget(max(effective, 0), PHASES[phase](settings)),
        reserved_output=around,
        safety_margin=settings.token_safety_margin,
    )
