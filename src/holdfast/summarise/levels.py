"""How much of a content a summary keeps, and what a summary is: values only.

levels: the first word of summarise; it knows no model and no text. The ratios are targets and no
promises: a text of one sentence has no tenth. What was reached is measured and recorded.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec


class SummarizationLevel(StrEnum):
    """How far a content is compressed, from nothing to a tenth."""

    RAW = "raw"
    CONDENSED = "condensed"
    KEY_POINTS = "key_points"
    HEADLINE = "headline"


LADDER = tuple(SummarizationLevel)
"""All levels, each tighter than the one before."""

RATIO: dict[SummarizationLevel, float] = {
    SummarizationLevel.RAW: 1.0,
    SummarizationLevel.CONDENSED: 0.5,
    SummarizationLevel.KEY_POINTS: 0.25,
    SummarizationLevel.HEADLINE: 0.1,
}
"""The share of the tokens that a level aims to keep."""


def tighter(level: SummarizationLevel) -> SummarizationLevel | None:
    """The next tighter level; None if there is none."""
    rest = LADDER[LADDER.index(level) + 1 :]
    return rest[0] if rest else None


def level_for(tokens: int, budget: int) -> SummarizationLevel:
    """The loosest level that aims at no more than the budget; the tightest if none does."""
    fitting = (level for level in LADDER if target_tokens(level, tokens) <= budget)
    return next(fitting, SummarizationLevel.HEADLINE)


def target_tokens(level: SummarizationLevel, tokens: int) -> int:
    """The tokens that a level aims at for a content of so many."""
    return max(1, math.ceil(RATIO[level] * tokens)) if tokens else 0


class Place(NamedTuple):
    """Where in the original a part of a summary comes from."""

    start: int
    """First character of the part in the summary's text."""
    stop: int
    where: str
    """In source units, as `expand_ref` opens them: `lines 45-67`, `$.items[3]`."""


class SummarizationResult(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, and all that is to be known of how it came about, by value."""

    text: str
    level: SummarizationLevel
    """The level that was reached."""
    requested_level: SummarizationLevel
    tokens_from: int
    tokens_to: int
    """Counted on `text`, never taken from who wrote it."""
    provider: str
    """`extractive`, or the id of the provider that wrote it; empty at `raw`: nobody did."""
    model: str = ""
    """The model as the provider reports it."""
    truncated: bool = False
    """The end was cut off to keep the budget."""
    cached: bool = False
    """No model was asked."""
    cost: float | None = None
    """US dollars; None where nobody knows a price."""
    ref: str = ""
    """The original's ref; empty if it was not stored."""
    unsupported: int = 0
    """Sentences that were dropped, because their source does not say what they state."""
    checked: int = 0
    """Sentences that were held against their source."""
    warnings: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    """Where the parts of the text come from, in their order."""

    @property
    def ratio(self) -> float:
        """The share of the tokens that was kept."""
        return self.tokens_to / self.tokens_from if self.tokens_from else 1.0

    @property
    def unsupported_share(self) -> float:
        """The share of the sentences that were dropped."""
        return self.unsupported / self.checked if self.checked else 0.0

    def __repr__(self) -> str:
        size = f"{self.tokens_from} to {self.tokens_to} tokens"
        return f"<SummarizationResult {self.level}, {size}, {self.provider or 'as it was'}>"


class Summarizer(Protocol):
    """What allocation needs of a summariser."""

    async def summarize(
        self,
        content: str,
        target_level: SummarizationLevel,
        context: str = "",
        target_budget: int | None = None,
    ) -> SummarizationResult:
        """Compress a content to a level, and to a budget of tokens if one is given."""

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",
        budget: int | None = None,
    ) -> SummarizationResult:
        """The same at once and without a model: quotations."""
