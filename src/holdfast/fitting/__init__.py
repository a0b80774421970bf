"""Make a request fit: within the limit, valid, the same bytes next time, every edit on record."""

from holdfast.fitting.fold_history import shared_engine
from holdfast.fitting.options import HIGH_WATER, LOW_WATER, FitOptions
from holdfast.fitting.plan import FitPlan, fit, fit_request, plan
from holdfast.fitting.reads import PlanEntry
from holdfast.fitting.state import FitState, Fitted, unfold

__all__ = [
    "HIGH_WATER",
    "LOW_WATER",
    "FitOptions",
    "FitPlan",
    "FitState",
    "Fitted",
    "PlanEntry",
    "fit",
    "fit_request",
    "plan",
    "shared_engine",
    "unfold",
]
