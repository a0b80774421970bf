"""Make a request fit: within the limit, valid, the same bytes next time, every edit on record."""

from holdfast.fitting.fit import fit, fit_request
from holdfast.fitting.fold_history import shared_engine
from holdfast.fitting.options import HIGH_WATER, LOW_WATER, FitOptions
from holdfast.fitting.state import FitState, Fitted, unfold

__all__ = [
    "HIGH_WATER",
    "LOW_WATER",
    "FitOptions",
    "FitState",
    "Fitted",
    "fit",
    "fit_request",
    "shared_engine",
    "unfold",
]
