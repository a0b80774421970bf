"""An item that competes for a place in a prompt: the estimated or counted cost of each level.

The cost of a level is estimated from the ratio that this call's summaries have reached, until its
summary exists; then its text is counted. Lengths that a summariser reports are ignored. A summary
that is empty or no shorter than its original does not count.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.allocate.fidelity import Rung
from holdfast.allocate.item import ContentItem
from holdfast.allocate.level_choice import Option
from holdfast.allocate.originals import KIND, Original
from holdfast.allocate.prompt import SEPARATOR, heading
from holdfast.allocate.strategy import WORTH
from holdfast.allocate.truncation import Count
from holdfast.quoting import bracketed, fenced
from holdfast.store.refs import DIGITS, ref_id
from holdfast.summarise import LADDER, RATIO, SummarizationLevel, SummarizationResult

LEAST_TOKENS = 16
"""Minimum tokens: a shorter summary or beginning is useless to a model."""
_GROWTH = 4
"""Factor between the sizes of beginnings that are offered; they grow into unused tokens later."""
LEAST_WEIGHT = 0.1
"""Weight of the item with the lowest priority, if the highest has 1. Priorities are close together,
because 70 % of one is quality and confidence, which are mostly unknown. Used directly they hardly
separate a source that answers the question from one that does not."""
_LEAST_RATIO = 0.5
"""Share of a level's target ratio below which a ratio is unusual and does not predict others."""
_SOME_REF = ref_id(KIND, "0123456789abcdef" * 4, DIGITS)
_SUMMARIES = tuple((level, Rung(level)) for level in LADDER[1:])
_PLACE = {rung: place for place, rung in enumerate(Rung)}
_DROPPED = Option(Rung.DROPPED, 0, 0, 0.0)
_COST = operator.attrgetter("cost")

Ratios = Mapping[SummarizationLevel, float]


class CandidateSummary(NamedTuple):
    """A usable summary."""

    result: SummarizationResult
    rung: Rung
    """The level that it reached: the requested one or a tighter one."""
    tokens: int
    """Our own count."""


class LadderTerms(NamedTuple):
    """Limits for the options of a ladder."""

    truncates: bool
    """Whether beginnings may be shown."""
    ratios: Ratios = RATIO
    made_only: bool = False
    """Whether only existing summaries count."""


class LineCosts(NamedTuple):
    """Approximate tokens of the lines around a full item, and around anything shorter."""

    whole: int
    shorter: int

    @classmethod
    def counted(cls, count: Count) -> LineCosts:
        """Return the costs for an item without a name; they hardly differ by item."""
        lines = f"\n{fenced('')}{SEPARATOR}"
        return cls(
            count(heading("", Rung.RAW, 0, "") + lines),
            count(heading("", Rung.KEY_POINTS, 99_999, _SOME_REF) + lines),
        )


class AllocationCandidate:
    """An item and its possible levels."""

    def __init__(
        self, item: ContentItem, weight: float, top: Rung, count: Count, frame: LineCosts
    ) -> None:
        self.item = item
        self.top = top
        """The highest level allowed."""
        self.weight = weight
        self.summaries: dict[SummarizationLevel, CandidateSummary] = {}
        """Summaries by requested level."""
        self.failures: dict[SummarizationLevel, str] = {}
        """Reasons why a requested level cannot be used."""
        self.original: Original | None = None
        """The stored original, once it is stored."""
        self._count = count
        self._is_counted = not item.token_count
        self.tokens = item.token_count or count(item.content)
        name = count(bracketed(item.source_id))
        self._lines = LineCosts(name + frame.whole, name + frame.shorter)

    def recounted(self) -> bool:
        """Count the content if its token count is a claim; return whether the claim was wrong."""
        if self._is_counted:
            return False
        self._is_counted = True
        claimed, self.tokens = self.tokens, self._count(self.item.content)
        return self.tokens != claimed

    def add(self, level: SummarizationLevel, result: SummarizationResult) -> None:
        """Add a summary, or record why it cannot be used."""
        tokens = self._count(result.text) if result.text.strip() else 0
        if not tokens:
            self.failures[level] = "the summary was empty"
        elif tokens >= self._count(self.item.content):
            self.failures[level] = "the summary was no shorter than the original"
        else:
            # A summariser may step down a level to keep its budget, never up: even a summary that
            # claims to be the full text is only the requested level.
            rung = max(Rung(level), Rung(result.level), key=_PLACE.__getitem__)
            self.summaries[level] = CandidateSummary(result, rung, tokens)

    # --- what there is to choose from ------------------------------------------------------------

    def ladder(self, limits: LadderTerms) -> list[Option]:
        """Return the options, each with a higher cost and worth than the one before."""
        options = [*self._full_text(), *self._summaries(limits)]
        if limits.truncates:
            options += self._beginnings(min((option.tokens for option in options), default=None))
        options.sort(key=_COST)
        ladder = [_DROPPED]
        for option in options:
            while ladder[-1].worth < option.worth and ladder[-1].cost == option.cost:
                ladder.pop()
            if option.worth > ladder[-1].worth:
                ladder.append(option)
        return ladder

    def most_of_beginning(self) -> int:
        """Return the maximum tokens of a beginning: those of the highest allowed level."""
        top = self.top.summary
        return math.ceil(RATIO[top] * self.tokens) if top else self.tokens

    def _full_text(self) -> list[Option]:
        """Return the full text, if it is allowed or so short that no summary would be shorter."""
        if self.top is not Rung.RAW and self.tokens > LEAST_TOKENS:
            return []
        return [Option(Rung.RAW, self.tokens, self.tokens + self._lines.whole, self.weight)]

    def _summaries(self, limits: LadderTerms) -> list[Option]:
        options = []
        for level, rung in _SUMMARIES:
            if _PLACE[rung] < _PLACE[self.top] or level in self.failures:
                continue
            if summary := self.summaries.get(level):
                options.append(self._shorter(summary.rung, summary.tokens, level))
            elif not limits.made_only:
                tokens = max(LEAST_TOKENS, math.ceil(limits.ratios[level] * self.tokens))
                if tokens < self.tokens:
                    options.append(self._shorter(rung, tokens, level))
        return options

    def _beginnings(self, shortest: int | None) -> list[Option]:
        """Return beginnings shorter than all other options: truncation is the last resort."""
        most = self.most_of_beginning()
        most = min(most, self.tokens if shortest is None else shortest)
        options = []
        tokens = LEAST_TOKENS
        while tokens < most:
            options.append(self._shorter(Rung.TRUNCATED, tokens))
            tokens *= _GROWTH
        return options

    def _shorter(
        self, rung: Rung, tokens: int, requested: SummarizationLevel | None = None
    ) -> Option:
        share = tokens / self.tokens if rung is Rung.TRUNCATED else 1.0
        return Option(
            rung, tokens, tokens + self._lines.shorter, self.weight * WORTH[rung] * share, requested
        )


def relative_weights(items: Sequence[ContentItem]) -> list[float]:
    """Return each item's weight relative to the others: 1 for the highest priority."""
    lowest = min((item.priority for item in items), default=0.0)
    spread = max((item.priority for item in items), default=0.0) - lowest
    if not spread:
        return [1.0] * len(items)
    share = (1 - LEAST_WEIGHT) / spread
    return [LEAST_WEIGHT + share * (item.priority - lowest) for item in items]


def measured_ratios(candidates: Sequence[AllocationCandidate]) -> Ratios:
    """Return the ratios that the summaries of a call reached; targets where there is none."""
    ratios = dict(RATIO)
    for level, _ in _SUMMARIES:
        holders = [each for each in candidates if level in each.summaries]
        if total := sum(each.tokens for each in holders):
            ratio = sum(each.summaries[level].tokens for each in holders) / total
            ratios[level] = max(ratio, _LEAST_RATIO * RATIO[level])
    return ratios
