"""Which option each candidate gets, within a room and the rules of the settings.

planning: after candidates. Kinds that a strategy serves first take their choice before the others;
what those need at the least is kept for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from holdfast.allocate.candidates import Candidate, Terms
from holdfast.allocate.choosing import (
    WAYS,
    Choice,
    Chooser,
    Option,
    cheapest,
    cost_of,
    weightiest,
)
from holdfast.allocate.strategy import AllocationStrategy
from holdfast.errors import AllocationError
from holdfast.settings import Settings


class Rules(NamedTuple):
    """What a plan keeps to."""

    strategy: AllocationStrategy
    truncates: bool
    least_items: int
    """How many items must stay."""

    @classmethod
    def of(cls, strategy: AllocationStrategy, settings: Settings, items: int) -> Rules:
        """The rules for so many items, as the settings say."""
        least = min(settings.min_items_per_phase, items)
        return cls(
            strategy,
            settings.summarization_truncate_fallback,
            least if settings.allow_content_dropping else items,
        )


class Plan:
    """The options of all candidates, and which of them a room allows."""

    def __init__(self, candidates: Sequence[Candidate], rules: Rules, terms: Terms) -> None:
        self._rules = rules
        self._ladders = [candidate.ladder(terms) for candidate in candidates]
        self._weights = [candidate.weight for candidate in candidates]
        is_first = [candidate.item.kind in rules.strategy.first for candidate in candidates]
        groups = (
            [n for n, first in enumerate(is_first) if first is wanted] for wanted in (True, False)
        )
        self._groups = [group for group in groups if group]
        self.possible = sum(len(ladder) > 1 for ladder in self._ladders) >= rules.least_items
        """Whether as many items have a form that can stay as must."""

    def within(self, room: int) -> list[Option] | None:
        """An option for each candidate; None if the least that must stay does not fit."""
        if not self.possible:
            return None
        choice = self._by_weight(room)
        if choice is None and self.least_cost <= room:
            choice = self._choosers(self._cheapest)(room)
        return None if choice is None else self._options(choice)

    def least(self) -> list[Option]:
        """The cheapest options of as many items as must stay; the others are dropped."""
        return self._options(self._cheapest)

    @property
    def least_cost(self) -> int:
        """What the cheapest cost that must stay."""
        return cost_of(self._ladders, self._cheapest)

    @cached_property
    def _cheapest(self) -> Choice:
        return cheapest(self._ladders, self._rules.least_items)

    @cached_property
    def _by_weight(self) -> Chooser:
        floors = weightiest(self._ladders, self._weights, self._rules.least_items)
        return self._choosers(floors)

    def _choosers(self, floors: Choice) -> Chooser:
        """The strategy's way, for what is served first and then for the others."""
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
                chosen = chooser(room - cost_of(self._ladders, choice) + own)
                if chosen is None:
                    return None
                for n, option in zip(group, chosen, strict=True):
                    choice[n] = option
            return choice

        return chosen_in

    def _options(self, choice: Choice) -> list[Option]:
        return [ladder[n] for ladder, n in zip(self._ladders, choice, strict=True)]


def too_little(plan: Plan, rules: Rules, room: int, phase: str) -> AllocationError:
    """The error for a room that not even the least fits in."""
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
