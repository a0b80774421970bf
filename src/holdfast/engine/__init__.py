"""The conductor: what the pure parts decide, done in the right order with the store."""

from holdfast.engine.accounting import Expanded
from holdfast.engine.holdfast import Holdfast, fit_options
from holdfast.engine.session import Session

__all__ = ["Expanded", "Holdfast", "Session", "fit_options"]
