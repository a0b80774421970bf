"""Allocation strategies as data: the way of choosing, kinds served first, maximum levels.

A new strategy is a new value, not new code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from holdfast.allocate.fidelity import Rung
from holdfast.errors import SettingsError

Way = Literal["best_total", "priority_first", "all_alike"]
"""How levels are chosen: see level_choice.py."""

WORTH: Mapping[Rung, float] = MappingProxyType(
    {
        Rung.RAW: 1.0,
        Rung.CONDENSED: 0.65,
        Rung.KEY_POINTS: 0.45,
        Rung.HEADLINE: 0.35,
        Rung.TRUNCATED: 0.8,
        Rung.DROPPED: 0.0,
    }
)
"""The share of an item's worth that a level keeps: the share of answers still in it, measured on
202 documents with an answer (docs/discussions/allocation.md). The value for a beginning is per
share of the content, so that a long beginning still has less than a headline."""


class AllocationStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """How a budget is divided among items."""

    name: str
    way: Way = "best_total"
    first: tuple[str, ...] = ()
    """Kinds of items that are served before all others and come first in the prompt."""
    top: Rung = Rung.RAW
    """The highest level of an item."""
    tops: tuple[tuple[str, Rung], ...] = ()
    """Exceptions for some kinds."""

    def top_of(self, kind: str) -> Rung:
        """Return the highest level for a kind of item."""
        return dict(self.tops).get(kind, self.top)


STRATEGIES: Mapping[str, AllocationStrategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            AllocationStrategy(name="best_total"),
            AllocationStrategy(name="priority_first", way="priority_first"),
            AllocationStrategy(
                name="findings_first", first=("finding",), tops=(("source", Rung.KEY_POINTS),)
            ),
            AllocationStrategy(name="refinement", tops=(("context", Rung.KEY_POINTS),)),
            AllocationStrategy(name="degradation", way="all_alike", top=Rung.KEY_POINTS),
        )
    }
)
"""`best_total` is the default; `priority_first` serves the highest priority first; `findings_first`
is for a synthesis, `refinement` for the context of an earlier round, `degradation` for an overflow.
"""

DEFAULT = STRATEGIES["best_total"]


def find_strategy(strategy: AllocationStrategy | str) -> AllocationStrategy:
    """Return a strategy by name."""
    if isinstance(strategy, AllocationStrategy):
        return strategy
    if strategy not in STRATEGIES:
        raise SettingsError(
            "there is no such strategy",
            where="strategy",
            fix=f"Use one of {', '.join(STRATEGIES)}.",
        )
    return STRATEGIES[strategy]
