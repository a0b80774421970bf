"""What may go into a prompt: a content, what it weighs, and what speaks for it.

item: the first word of allocate; values only. Higher is more important everywhere (C29). Every
level that a caller may name has a number here, also the unknown: what nobody judged stands in the
middle, neither rewarded nor punished.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from holdfast.errors import SettingsError

DEFAULT_PRIORITY = 0.5


class Quality(StrEnum):
    """How good a source is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a finding is, or what was found in a source."""

    CONFIRMED = "confirmed"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    SPECULATION = "speculation"
    UNKNOWN = "unknown"


class ContentItem(msgspec.Struct, frozen=True, kw_only=True):
    """One source, finding or earlier context that asks for a place in the prompt."""

    source_id: str
    """Its name in the prompt and in the record; no two items of a call share one."""
    content: str
    token_count: int = 0
    """As its maker counted it, and believed until the prompt is counted; 0: counted at once."""
    priority: float = DEFAULT_PRIORITY
    """0 to 1, see `compute_priority`."""
    kind: str = "source"
    """`source`, `finding`, `context`, …: strategies treat kinds differently."""
    quality: Quality = Quality.UNKNOWN
    confidence: Confidence = Confidence.UNKNOWN
    published: float | None = None
    """When it was written, in seconds since 1970; None: nobody knows."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.priority) and 0 <= self.priority <= 1):
            raise SettingsError(
                "a priority is not between 0 and 1",
                where=self.source_id,
                fix="Give a number between, or none: then it is computed.",
            )
        if self.token_count < 0:
            raise SettingsError("a count of tokens is below zero", where=self.source_id)

    def __repr__(self) -> str:
        return f"<ContentItem {self.source_id}, {len(self.content)} characters>"
