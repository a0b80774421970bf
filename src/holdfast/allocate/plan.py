"""Choose an option for each candidate within a number of tokens and the rules of the settings.

Kinds that a strategy serves first choose before the others, whose floors are reserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from holdfast.allocate.candidates import AllocationCandidate, LadderTerms
from holdfast.allocate.level_choice import (
    WAYS,
    Choice,
    Chooser,
    Option,
    cheapest_floors,
    heaviest_floors,
    total_cost,
)
from holdfast.allocate.strategy import AllocationStrategy
from holdfast.errors import AllocationError
from holdfast.settings import Settings


class PlanRules(NamedTuple):
    """The rules of a plan."""

    strategy: AllocationStrategy
    truncates: bool
    least_items: int
    """Number of items that must be kept."""

    @classmethod
    def of(cls, strategy: AllocationStrategy, settings: Settings, items: int) -> PlanRules:
        """Return the rules for a number of items, from the settings."""
        least = min(settings.min_items_per_phase, items)
        return cls(
            strategy,
            settings.summarization_truncate_fallback,
            least if settings.allow_content_dropping else items,
        )


class Plan:
    """The options of all candidates, and the choice for a number of tokens."""

    def __init__(
        self, candidates: Sequence[AllocationCandidate], rules: PlanRules, terms: LadderTerms
    ) -> None:
        self._rules = rules
        self._ladders = [candidate.ladder(terms) for candidate in candidates]
        self._weights = [candidate.weight for candidate in candidates]
        is_first = [candidate.item.kind in rules.strategy.first for candidate in candidates]
        groups = (
            [n for n, first in enumerate(is_first) if first is group_is_first]
            for group_is_first in (True, False)
        )
        self._groups = [group for group in groups if group]
        self.possible = sum(len(ladder) > 1 for ladder in self._ladders) >= rules.least_items
        """Whether enough items have a form that can be kept."""

    def within(self, room: int) -> list[Option] | None:
        """Return an option for each candidate; None if the required minimum does not fit."""
        if not self.possible:
            return None
        choice = self._by_weight(room)
        if choice is None and self.least_cost <= room:
            choice = self._choosers(self._cheapest)(room)
        return None if choice is None else self._options(choice)

    def least(self) -> list[Option]:
        """Return the cheapest options of as many items as must be kept; the others are dropped."""
        return self._options(self._cheapest)

    @property
    def least_cost(self) -> int:
        """Return the cost of the cheapest options that must be kept."""
        return total_cost(self._ladders, self._cheapest)

    @cached_property
    def _cheapest(self) -> Choice:
        return cheapest_floors(self._ladders, self._rules.least_items)

    @cached_property
    def _by_weight(self) -> Chooser:
        floors = heaviest_floors(self._ladders, self._weights, self._rules.least_items)
        return self._choosers(floors)

    def _choosers(self, floors: Choice) -> Chooser:
        """Return a chooser that applies the strategy to the first kinds, then to the others."""
        way = WAYS[self._rules.strategy.way]
        choosers = [
            way(
                [self._ladders[n] for n in group],
                [self._weights[n] for n in group],
                [floors[n] for n in group],
            )
            for group in self._groups
        ]

        def chosen_in(room: int) -> Choice | None:
            choice = list(floors)
            for group, chooser in zip(self._groups, choosers, strict=True):
                own = sum(self._ladders[n][floors[n]].cost for n in group)
                chosen = chooser(room - total_cost(self._ladders, choice) + own)
                if chosen is None:
                    return None
                for n, option in zip(group, chosen, strict=True):
                    choice[n] = option
            return choice

        return chosen_in

    def _options(self, choice: Choice) -> list[Option]:
        return [ladder[n] for ladder, n in zip(self._ladders, choice, strict=True)]


def build_allocation_error(plan: Plan, rules: PlanRules, room: int, phase: str) -> AllocationError:
    """Return the error for a budget that is smaller than the required minimum."""
    how = "truncated" if rules.truncates else "in their tightest form"
    is_one = rules.least_items == 1
    items = "1 item" if is_one else f"{rules.least_items:,} items"
    what = (
        f"{items} must stay and need{'s' * is_one} at least {plan.least_cost:,} tokens "
        f"{how}, of {room:,} that there are"
        if plan.possible
        else f"{items} must stay, and some of them could not be summarised"
    )
    ways = ["Raise the budget", "lower min_items_per_phase", "switch allow_content_dropping on"]
    if not rules.truncates:
        ways.append("switch summarization_truncate_fallback on")
    return AllocationError(
        what,
        where=phase or rules.strategy.name,
        fix=f"{', '.join(ways[:-1])} or {ways[-1]}.",
        kind="input",
        limit=room,
        planned=plan.least_cost,
    )
