"""Divide a token budget among contents: choose a level for each, so that the whole prompt fits."""

from holdfast.allocate.fidelity import ContentFidelityRecord, ContentState, Rung, fidelity_key
from holdfast.allocate.item import Confidence, ContentItem, Quality, compute_priority, priorities
from holdfast.allocate.manager import AllocationResult, ContextBudgetManager
from holdfast.allocate.phases import (
    PHASES,
    DegradedResult,
    GracefulDegradationHandler,
    budget_of_phase,
)
from holdfast.allocate.prompt import PromptPart
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
    "PromptPart",
    "Quality",
    "Rung",
    "budget_of_phase",
    "compute_priority",
    "fidelity_key",
    "priorities",
]
