"""An item on its way into a prompt: what is known of its levels, and the ladder that makes of it.

candidates: after choosing and prompt. What a level would cost is estimated until its summary is
made, from the ratio that summaries of this call reached; then it is counted on the text. What a
summariser says of its own lengths is never believed. A summary that is empty, or no shorter than
its original, is none.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.allocate.choosing import Option
from holdfast.allocate.fidelity import Rung
from holdfast.allocate.item import ContentItem
from holdfast.allocate.originals import KIND, Original
from holdfast.allocate.prompt import SEPARATOR, heading
from holdfast.allocate.strategy import WORTH
from holdfast.allocate.truncating import Count
from holdfast.quoting import bracketed, fenced
from holdfast.store.refs import DIGITS, ref_id
from holdfast.summarise import LADDER, RATIO, SummarizationLevel, SummarizationResult

LEAST_TOKENS = 16
"""A shorter summary or beginning says nothing that a model could use."""
_GROWTH = 4
"""Beginnings are offered in sizes that grow by this; what room is left over they fill."""
LEAST_WEIGHT = 0.1
"""What the item of the lowest priority counts where the highest counts 1. Priorities themselves lie
close together: 70 % of one is quality and confidence, which mostly nobody knows. Taken as they are
they hardly tell a source that answers the question from one that does not."""
_LEAST_RATIO = 0.5
"""Of what a level aims at: a content that can be said in less is odd, and tells of no other."""
_SOME_REF = ref_id(KIND, "0123456789abcdef" * 4, DIGITS)
_SUMMARIES = tuple((level, Rung(level)) for level in LADDER[1:])
_PLACE = {rung: place for place, rung in enumerate(Rung)}
_NOTHING = Option(Rung.DROPPED, 0, 0, 0.0)
_COST = operator.attrgetter("cost")

Ratios = Mapping[SummarizationLevel, float]


class Summary(NamedTuple):
    """A summary that can be used."""

    result: SummarizationResult
    rung: Rung
    """The level that it reached: the one asked for, or a tighter one."""
    tokens: int
    """Counted by us."""


class Terms(NamedTuple):
    """What ladders are made by."""

    truncates: bool
    """Whether beginnings may be shown."""
    ratios: Ratios = RATIO
    made_only: bool = False
    """Whether only summaries count that are there already."""


class Frame(NamedTuple):
    """Tokens of the lines around the whole of an item, and around anything shorter; nearly."""

    whole: int
    shorter: int

    @classmethod
    def counted(cls, count: Count) -> Frame:
        """Those of an item without a name: they are the same for all, but for numbers."""
        lines = f"\n{fenced('')}{SEPARATOR}"
        return cls(
            count(heading("", Rung.RAW, 0, "") + lines),
            count(heading("", Rung.KEY_POINTS, 99_999, _SOME_REF) + lines),
        )


class Candidate:
    """An item, and what is known of its levels."""

    def __init__(
        self, item: ContentItem, weight: float, top: Rung, count: Count, frame: Frame
    ) -> None:
        self.item = item
        self.top = top
        """The most that may be shown of it."""
        self.weight = weight
        self.summaries: dict[SummarizationLevel, Summary] = {}
        """By the level that was asked for."""
        self.failures: dict[SummarizationLevel, str] = {}
        """Why a level that was asked for cannot be used."""
        self.original: Original | None = None
        """What it is stored as, once it is."""
        self._count = count
        self._is_counted = not item.token_count
        self.tokens = item.token_count or count(item.content)
        name = count(bracketed(item.source_id))
        self._lines = Frame(name + frame.whole, name + frame.shorter)

    def recounted(self) -> bool:
        """Whether the content has another length than its maker said; believes it no longer."""
        if self._is_counted:
            return False
        self._is_counted = True
        believed, self.tokens = self.tokens, self._count(self.item.content)
        return self.tokens != believed

    def add(self, asked: SummarizationLevel, result: SummarizationResult) -> None:
        """Take a summary up if it is one; else note why not."""
        tokens = self._count(result.text) if result.text.strip() else 0
        if not tokens:
            self.failures[asked] = "the summary was empty"
        elif tokens >= self._count(self.item.content):
            self.failures[asked] = "the summary was no shorter than the original"
        else:
            # A summariser may step down a level to keep its budget, never up: a summary that is
            # said to be the whole is still only what was asked for.
            rung = max(Rung(asked), Rung(result.level), key=_PLACE.__getitem__)
            self.summaries[asked] = Summary(result, rung, tokens)

    # --- what there is to choose from ------------------------------------------------------------

    def ladder(self, terms: Terms) -> list[Option]:
        """The options from nothing to the most, each dearer and worth more than the one before."""
        options = [*self._whole(), *self._summaries(terms)]
        if terms.truncates:
            options += self._beginnings(min((option.tokens for option in options), default=None))
        options.sort(key=_COST)
        ladder = [_NOTHING]
        for option in options:
            while ladder[-1].worth < option.worth and ladder[-1].cost == option.cost:
                ladder.pop()
            if option.worth > ladder[-1].worth:
                ladder.append(option)
        return ladder

    def most_of_beginning(self) -> int:
        """The most tokens that a beginning may have: as many as the level that is the top."""
        top = self.top.summary
        return math.ceil(RATIO[top] * self.tokens) if top else self.tokens

    def _whole(self) -> list[Option]:
        """All of it, if that is allowed, or so short that no summary would be shorter."""
        if self.top is not Rung.RAW and self.tokens > LEAST_TOKENS:
            return []
        return [Option(Rung.RAW, self.tokens, self.tokens + self._lines.whole, self.weight)]

    def _summaries(self, terms: Terms) -> list[Option]:
        options = []
        for level, rung in _SUMMARIES:
            if _PLACE[rung] < _PLACE[self.top] or level in self.failures:
                continue
            if summary := self.summaries.get(level):
                options.append(self._shorter(summary.rung, summary.tokens, level))
            elif not terms.made_only:
                tokens = max(LEAST_TOKENS, math.ceil(terms.ratios[level] * self.tokens))
                if tokens < self.tokens:
                    options.append(self._shorter(rung, tokens, level))
        return options

    def _beginnings(self, shortest: int | None) -> list[Option]:
        """Beginnings shorter than all else there is: truncation stays the last resort (000-02)."""
        most = self.most_of_beginning()
        most = min(most, self.tokens if shortest is None else shortest)
        options = []
        tokens = LEAST_TOKENS
        while tokens < most:
            options.append(self._shorter(Rung.TRUNCATED, tokens))
            tokens *= _GROWTH
        return options

    def _shorter(self, rung: Rung, tokens: int, asked: SummarizationLevel | None = None) -> Option:
        share = tokens / self.tokens if rung is Rung.TRUNCATED else 1.0
        return Option(
            rung, tokens, tokens + self._lines.shorter, self.weight * WORTH[rung] * share, asked
        )


def weights_of(items: Sequence[ContentItem]) -> list[float]:
    """What each item counts beside the others of its call: 1 for the highest priority."""
    lowest = min((item.priority for item in items), default=0.0)
    spread = max((item.priority for item in items), default=0.0) - lowest
    if not spread:
        return [1.0] * len(items)
    share = (1 - LEAST_WEIGHT) / spread
    return [LEAST_WEIGHT + share * (item.priority - lowest) for item in items]


def measured(candidates: Sequence[Candidate]) -> Ratios:
    """The ratios that the summaries of a call reached; the aimed ones where none was made."""
    ratios = dict(RATIO)
    for level, _ in _SUMMARIES:
        holders = [each for each in candidates if level in each.summaries]
        if total := sum(each.tokens for each in holders):
            ratio = sum(each.summaries[level].tokens for each in holders) / total
            ratios[level] = max(ratio, _LEAST_RATIO * RATIO[level])
    return ratios
