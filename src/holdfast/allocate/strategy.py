"""Strategies of allocation, as data: how levels are chosen, who comes first, who may have how much.

strategy: after fidelity. A new strategy is a new value, not new code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from holdfast.allocate.fidelity import Rung
from holdfast.errors import SettingsError

Way = Literal["best_total", "priority_first", "all_alike"]
"""How levels are chosen: see choosing.py."""

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
"""What a level keeps of an item's worth: the share of answers that its quotations still held, of
202 documents that held one (docs/discussions/allocation.md). That of a beginning is for each share
of the content, and so less than a headline's, however much of the budget it takes."""


class AllocationStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """How a budget is divided among items."""

    name: str
    way: Way = "best_total"
    first: tuple[str, ...] = ()
    """Kinds of items that are served before all others, and stand before them in the prompt."""
    top: Rung = Rung.RAW
    """The most that an item may have."""
    tops: tuple[tuple[str, Rung], ...] = ()
    """The same for some kinds."""

    def top_of(self, kind: str) -> Rung:
        """The most that an item of a kind may have."""
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
"""`best_total` is the default; `priority_first` serves from the top; `findings_first` is for a
synthesis, `refinement` for what an earlier round left, `degradation` for an overflow."""

DEFAULT = STRATEGIES["best_total"]


def strategy_named(strategy: AllocationStrategy | str) -> AllocationStrategy:
    """A strategy by its name."""
    if isinstance(strategy, AllocationStrategy):
        return strategy
    if strategy not in STRATEGIES:
        raise SettingsError(
            "there is no such strategy",
            where="strategy",
            fix=f"Use one of {', '.join(STRATEGIES)}.",
        )
    return STRATEGIES[strategy]
