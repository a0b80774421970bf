"""Make a request fit: within the limit, valid, the same bytes next time."""

from holdfast.fitting.fit import HIGH_WATER, LOW_WATER, fit, shared_engine
from holdfast.fitting.state import FitState, Fitted, unfold

__all__ = ["HIGH_WATER", "LOW_WATER", "FitState", "Fitted", "fit", "shared_engine", "unfold"]
