"""Make conversations shorter, whole: anchors → pieces → edits → strategies → engine."""

from holdfast.trim.anchors import (
    DEFAULT_ANCHORS,
    Anchor,
    AnchorDefinition,
    AnchorPreservationManager,
    mark,
)
from holdfast.trim.engine import ContextOptimizationEngine, Effect
from holdfast.trim.pieces import Bench, Cut, Fold, Piece
from holdfast.trim.strategies import (
    PROFILES,
    STRATEGIES,
    ContextStrategy,
    FoldStrategy,
    FrozenHeadsTailsStrategy,
    ProgressiveStrategy,
    SummarizationStrategy,
    Trimmed,
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
    "Cut",
    "Effect",
    "Fold",
    "FoldStrategy",
    "FrozenHeadsTailsStrategy",
    "Piece",
    "ProgressiveStrategy",
    "SummarizationStrategy",
    "Trimmed",
    "mark",
]
