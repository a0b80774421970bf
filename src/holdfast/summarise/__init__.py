"""Summarise contents without adding anything: levels, providers, checks and a cache."""

from holdfast.summarise.cache import MemorySummaryCache, StoredSummaryCache, SummaryCache
from holdfast.summarise.levels import (
    LADDER,
    RATIO,
    Place,
    SummarizationLevel,
    SummarizationResult,
    Summarizer,
    level_for,
    target_tokens,
    tighter,
)
from holdfast.summarise.summarizer import ContentSummarizer

__all__ = [
    "LADDER",
    "RATIO",
    "ContentSummarizer",
    "MemorySummaryCache",
    "Place",
    "StoredSummaryCache",
    "SummarizationLevel",
    "SummarizationResult",
    "Summarizer",
    "SummaryCache",
    "level_for",
    "target_tokens",
    "tighter",
]
