"""The conductor: what the pure parts decide, done in the right order with the store."""

from holdfast.engine.accounting import Expanded, ReusedAnswer, ToolUse
from holdfast.engine.holdfast import Holdfast
from holdfast.engine.options import assemble_options, fit_options
from holdfast.engine.session import Session

__all__ = [
    "Expanded",
    "Holdfast",
    "ReusedAnswer",
    "Session",
    "ToolUse",
    "assemble_options",
    "fit_options",
]
