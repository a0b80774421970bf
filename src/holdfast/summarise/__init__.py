"""Say less of a content without saying anything else: levels, providers, checks, and a cache."""

from holdfast.summarise.levels import (
    LADDER,
    RATIO,
    Place,
    SummarizationLevel,
    SummarizationResult,
    Summarizer,
    tighter,
)

__all__ = [
    "LADDER",
    "RATIO",
    "Place",
    "SummarizationLevel",
    "SummarizationResult",
    "Summarizer",
    "tighter",
]
