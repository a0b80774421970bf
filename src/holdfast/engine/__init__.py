"""The engine: runs the pure parts in order, and stores their results."""

from holdfast.engine.bill import ExpansionUsage, ReusedAnswer, ToolUse
from holdfast.engine.holdfast import Holdfast
from holdfast.engine.observation import Observation
from holdfast.engine.options import assemble_options, fit_options
from holdfast.engine.session import Session

__all__ = [
    "ExpansionUsage",
    "Holdfast",
    "Observation",
    "ReusedAnswer",
    "Session",
    "ToolUse",
    "assemble_options",
    "fit_options",
]
