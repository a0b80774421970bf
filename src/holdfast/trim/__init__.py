"""Make conversations shorter, whole."""

from holdfast.trim.anchors import (
    DEFAULT_ANCHORS,
    Anchor,
    AnchorDefinition,
    AnchorPreservationManager,
    mark,
)
from holdfast.trim.chains import TrimState
from holdfast.trim.engine import ContextOptimizationEngine, Effect, cannot_fit
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import Fold, Replacement
from holdfast.trim.strategies import (
    PROFILES,
    STRATEGIES,
    ContextStrategy,
    FoldStrategy,
    FrozenHeadsTailsStrategy,
    ProgressiveStrategy,
    SummarizationStrategy,
)

__all__ = [
    "DEFAULT_ANCHORS",
    "PROFILES",
    "STRATEGIES",
    "Anchor",
    "AnchorDefinition",
    "AnchorPreservationManager",
    "Bench",
    "ContextOptimizationEngine",
    "ContextStrategy",
    "Effect",
    "Fold",
    "FoldStrategy",
    "FrozenHeadsTailsStrategy",
    "Piece",
    "ProgressiveStrategy",
    "Replacement",
    "SummarizationStrategy",
    "TrimState",
    "cannot_fit",
    "mark",
]
