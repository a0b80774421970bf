"""Summarisation levels and the result of a summary, as plain values.

The ratios are targets, because a text of one sentence has no tenth; results record the measured
size.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec


class SummarizationLevel(StrEnum):
    """The degree of compression, from the unchanged content to a tenth of it."""

    RAW = "raw"
    CONDENSED = "condensed"
    KEY_POINTS = "key_points"
    HEADLINE = "headline"


LADDER = tuple(SummarizationLevel)
"""All levels, each shorter than the one before."""

RATIO: dict[SummarizationLevel, float] = {
    SummarizationLevel.RAW: 1.0,
    SummarizationLevel.CONDENSED: 0.5,
    SummarizationLevel.KEY_POINTS: 0.25,
    SummarizationLevel.HEADLINE: 0.1,
}
"""Target share of the tokens, by level."""


def tighter(level: SummarizationLevel) -> SummarizationLevel | None:
    """Return the next shorter level; None if there is none."""
    shorter = LADDER[LADDER.index(level) + 1 :]
    return shorter[0] if shorter else None


def level_for(tokens: int, budget: int) -> SummarizationLevel:
    """Return the longest level whose target is within the budget, or the shortest level."""
    fitting = (level for level in LADDER if target_tokens(level, tokens) <= budget)
    return next(fitting, SummarizationLevel.HEADLINE)


def target_tokens(level: SummarizationLevel, tokens: int) -> int:
    """Return the target tokens of a level for a content of `tokens`."""
    return max(1, math.ceil(RATIO[level] * tokens)) if tokens else 0


class Place(NamedTuple):
    """The part of the original from which a part of a summary comes."""

    start: int
    """Offset of the part's first character in the summary."""
    stop: int
    where: str
    """Position in the original, as `expand_ref` opens it: `lines 45-67`, `$.items[3]`."""


class SummarizationResult(msgspec.Struct, frozen=True, kw_only=True):
    """A summary with the details of how it was made."""

    text: str
    level: SummarizationLevel
    """The level reached."""
    requested_level: SummarizationLevel
    tokens_from: int
    tokens_to: int
    """Tokens of `text`, counted locally, never taken from the provider."""
    provider: str
    """`extractive` or the id of the provider; empty if the content is unchanged (`raw`)."""
    model: str = ""
    """The model's name as reported by the provider."""
    truncated: bool = False
    """Whether sentences were removed or cut to keep the budget."""
    cached: bool = False
    """Whether no model was called, because the cache had the summary."""
    cost: float | None = None
    """Cost in US dollars; None if the price is unknown."""
    ref: str = ""
    """The ref of the original; empty if it was not stored."""
    unsupported: int = 0
    """Number of sentences removed because the source does not support them."""
    checked: int = 0
    """Number of sentences compared with the source."""
    warnings: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    """Source positions of the parts of the text, in order."""

    @property
    def ratio(self) -> float:
        """Return the share of the tokens that remains."""
        return self.tokens_to / self.tokens_from if self.tokens_from else 1.0

    @property
    def unsupported_share(self) -> float:
        """Return the share of the sentences that were removed."""
        return self.unsupported / self.checked if self.checked else 0.0

    def __repr__(self) -> str:
        size = f"{self.tokens_from} to {self.tokens_to} tokens"
        return f"<SummarizationResult {self.level}, {size}, {self.provider or 'as it was'}>"


class Summarizer(Protocol):
    """The summariser interface that allocation uses."""

    async def summarize(
        self,
        content: str,
        target_level: SummarizationLevel,
        context: str = "",
        target_budget: int | None = None,
    ) -> SummarizationResult:
        """Compress a content to a level, and to a token budget if one is given."""

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",
        budget: int | None = None,
    ) -> SummarizationResult:
        """Compress a content synchronously and without a model, by quoting it."""
