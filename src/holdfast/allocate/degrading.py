"""What is done when a phase overflows: the same ladder, all items going down it together.

degrading: the last word of allocate. All to key points, then to headlines, then truncated, then the
lightest dropped; an error only if not even the least that must stay fits (000-62 to 66).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.allocate.asking import Progress
from holdfast.allocate.fidelity import Rung
from holdfast.allocate.item import ContentItem
from holdfast.allocate.manager import AllocationResult, ContextBudgetManager
from holdfast.budget import PhaseBudget

_STEPS = (Rung.KEY_POINTS, Rung.HEADLINE, Rung.TRUNCATED, Rung.DROPPED)


class DegradedResult(AllocationResult, frozen=True, kw_only=True):
    """A prompt that fits after all, and how far down the ladder that took."""

    steps: tuple[Rung, ...] = ()
    """The steps that were taken, the last being the one at which all fitted."""


class GracefulDegradationHandler:
    """Answers an overflow with a prompt that fits."""

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
        """Bring all items down until they fit.

        Raises:
            AllocationError: nothing fits that must stay; the text says what would help.
        """
        result = await self.manager.allocate_budget(
            items, budget, "degradation", phase=phase, context=context, progress=progress
        )
        levels = {record.level for record in result.fidelity_metadata.values()}
        lowest = max((n for n, step in enumerate(_STEPS) if step in levels), default=-1)
        fields = {name: getattr(result, name) for name in result.__struct_fields__}
        return DegradedResult(**fields, steps=_STEPS[: lowest + 1])
