"""Choose a level for each item so that all fit, in three ways, on numbers alone.

An item's ladder has its options from nothing to the most; each costs more and has more worth than
the one before. A floor is the lowest option that an item must have.

`best_total` takes the steps up all ladders in the order of worth per token, and skips those that do
not fit. More room never gives a worse result: take the first step that only the larger room can
afford. It costs more than all that the smaller room has left, and no later step brings more per
token, so the smaller room can only gain less.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from holdfast.allocate.fidelity import Rung
from holdfast.allocate.strategy import Way
from holdfast.summarise import SummarizationLevel


class Option(NamedTuple):
    """One level of one item."""

    rung: Rung
    tokens: int
    """Tokens of the text."""
    cost: int
    """Tokens including the lines around it."""
    worth: float
    """The share of the item's worth that it keeps, times the item's weight."""
    asked: SummarizationLevel | None = None
    """The requested summary level; None if no summary is used."""


Ladder = Sequence[Option]
Choice = list[int]
"""For each item the index of its option in its ladder; 0 is dropped."""
Chooser = Callable[[int], Choice | None]
"""Returns the choice for a number of tokens; None if the floors alone do not fit."""


def heaviest_floors(
    ladders: Sequence[Ladder], weights: Sequence[float], least_items: int
) -> Choice:
    """Return floors that keep the `least_items` heaviest items."""
    return _floors(ladders, least_items, lambda n: -weights[n])


def cheapest_floors(ladders: Sequence[Ladder], least_items: int) -> Choice:
    """Return floors that keep `least_items` items at the lowest cost."""
    return _floors(ladders, least_items, lambda n: ladders[n][1].cost)


def _floors(ladders: Sequence[Ladder], least_items: int, order: Callable[[int], float]) -> Choice:
    available = [n for n, ladder in enumerate(ladders) if len(ladder) > 1]
    kept_items = set(sorted(available, key=lambda n: (order(n), n))[:least_items])
    return [int(n in kept_items) for n in range(len(ladders))]


def best_total(ladders: Sequence[Ladder], weights: Sequence[float], floors: Choice) -> Chooser:
    """Return a chooser for the greatest total worth, up to the last steps that do not fit."""
    del weights  # each option's worth includes its item's weight
    steps = sorted(
        step
        for item, (ladder, floor) in enumerate(zip(ladders, floors, strict=True))
        for step in _steps(item, ladder, floor)
    )
    least = total_cost(ladders, floors)

    def chosen_in(room: int) -> Choice | None:
        remaining = room - least
        if remaining < 0:
            return None
        chosen = list(floors)
        for _, item, upper in steps:
            if (lower := chosen[item]) < upper:
                ladder = ladders[item]
                cost = ladder[upper].cost - ladder[lower].cost
                if cost <= remaining:
                    chosen[item] = upper
                    remaining -= cost
        return chosen

    return chosen_in


def priority_first(ladders: Sequence[Ladder], weights: Sequence[float], floors: Choice) -> Chooser:
    """Return a chooser that gives the heaviest item its highest level, then the next one."""
    order = sorted(range(len(ladders)), key=lambda n: (-weights[n], n))
    least = total_cost(ladders, floors)

    def chosen_in(room: int) -> Choice | None:
        remaining = room - least
        if remaining < 0:
            return None
        chosen = list(floors)
        for item in order:
            ladder = ladders[item]
            remaining += ladder[floors[item]].cost
            chosen[item] = bisect.bisect_right(ladder, remaining, key=_cost) - 1
            remaining -= ladder[chosen[item]].cost
        return chosen

    return chosen_in


def all_alike(ladders: Sequence[Ladder], weights: Sequence[float], floors: Choice) -> Chooser:
    """Return a chooser with one level for all; if none fits, the lightest are dropped."""
    caps = sorted({_height(option) for ladder in ladders for option in ladder[1:]}, reverse=True)
    lightest = sorted(range(len(ladders)), key=lambda n: (weights[n], -n))

    def chosen_in(room: int) -> Choice | None:
        chosen: Choice = []
        for cap in caps:
            chosen = [_at_most(ladder, cap) for ladder in ladders]
            if total_cost(ladders, chosen) <= room:
                return chosen
        over = total_cost(ladders, chosen) - room if chosen else 0
        for item in lightest:
            if over > 0 and not floors[item]:
                over -= ladders[item][chosen[item]].cost
                chosen[item] = 0
        return None if over > 0 else chosen or [0] * len(ladders)

    return chosen_in


WAYS: Mapping[Way, Callable[[Sequence[Ladder], Sequence[float], Choice], Chooser]] = (
    MappingProxyType(
        {"best_total": best_total, "priority_first": priority_first, "all_alike": all_alike}
    )
)


def total_cost(ladders: Sequence[Ladder], choice: Choice) -> int:
    """Return the total cost of the chosen options."""
    return sum(ladder[n].cost for ladder, n in zip(ladders, choice, strict=True))


def _cost(option: Option) -> int:
    return option.cost


# --- steps up a ladder ---------------------------------------------------------------------------

_Step = tuple[float, int, int]
"""Worth per token, negated so that the largest sorts first; the item; the index of the option that
the step leads to."""


def _steps(item: int, ladder: Ladder, floor: int) -> Iterator[_Step]:
    """Yield the steps along the ladder's upper hull, and to the options below it.

    Options below the hull are used when the hull's next option does not fit.
    """
    hull = _hull(ladder, floor)
    for lower, upper in pairwise(hull):
        yield from (_step(item, ladder, lower, n) for n in range(lower + 1, upper + 1))


def _step(item: int, ladder: Ladder, lower: int, upper: int) -> _Step:
    below, above = ladder[lower], ladder[upper]
    return (below.worth - above.worth) / (above.cost - below.cost), item, upper


def _hull(ladder: Ladder, floor: int) -> list[int]:
    """Return the options on the upper hull, from the floor up."""
    hull: list[int] = []
    for n in range(floor, len(ladder)):
        while len(hull) > 1 and not _bends_down(ladder[hull[-2]], ladder[hull[-1]], ladder[n]):
            hull.pop()
        hull.append(n)
    return hull


def _bends_down(a: Option, b: Option, c: Option) -> bool:
    return (b.worth - a.worth) * (c.cost - a.cost) > (c.worth - a.worth) * (b.cost - a.cost)


# --- one level for all ----------------------------------------------------------------------------


def _height(option: Option) -> tuple[int, int]:
    return -_ORDER[option.rung], option.tokens if option.rung is Rung.TRUNCATED else 0


def _at_most(ladder: Ladder, cap: tuple[int, int]) -> int:
    """Return the highest option up to a cap; the lowest if all are higher."""
    under = (n for n in range(len(ladder) - 1, 0, -1) if _height(ladder[n]) <= cap)
    return next(under, min(1, len(ladder) - 1))


_ORDER = {rung: place for place, rung in enumerate(Rung)}
