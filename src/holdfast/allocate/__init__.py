"""Divide a budget among contents, each at the level that serves the whole best; nothing in silence.

item → priority · fidelity → strategy → choosing · truncating · prompt · originals → candidates →
planning · asking → composing → manager → degrading; phases stands beside them.
"""

from holdfast.allocate.fidelity import ContentFidelityRecord, ContentState, Rung, fidelity_key
from holdfast.allocate.item import Confidence, ContentItem, Quality, compute_priority, priorities
from holdfast.allocate.manager import AllocationResult, ContextBudgetManager
from holdfast.allocate.phases import (
    PHASES,
    DegradedResult,
    GracefulDegradationHandler,
    budget_of_phase,
)
from holdfast.allocate.prompt import Part
from holdfast.allocate.strategy import STRATEGIES, AllocationStrategy

__all__ = [
    "PHASES",
    "STRATEGIES",
    "AllocationResult",
    "AllocationStrategy",
    "Confidence",
    "ContentFidelityRecord",
    "ContentItem",
    "ContentState",
    "ContextBudgetManager",
    "DegradedResult",
    "GracefulDegradationHandler",
    "Part",
    "Quality",
    "Rung",
    "budget_of_phase",
    "compute_priority",
    "fidelity_key",
    "priorities",
]
