"""Which level each item gets, so that all fit: three ways to choose, on numbers alone.

choosing: after strategy; it knows no text and no summariser. An item's ladder are its options from
nothing to the most, each dearer and worth more than the one before. A floor is the least option
that an item must have. What does not depend on the room is done once: a prompt that turns out too
long is chosen anew with less.

`best_total` takes the steps up all ladders together, the one that brings most worth for its tokens
first, and every step that still fits. A larger room never ends with less: take the first step that
the larger can afford and the smaller cannot. It costs more than all that the smaller has left, and
no later step brings more for a token, so what the smaller can still gain is less than this step.
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
    """Of what would be shown."""
    cost: int
    """The same with the lines around it."""
    worth: float
    """How much of the item's worth is kept, times its weight."""
    asked: SummarizationLevel | None = None
    """The level to ask of a summariser, or that was asked; None where none is."""


Ladder = Sequence[Option]
Choice = list[int]
"""For each item the place of its option in its ladder; 0 is dropped."""
Chooser = Callable[[int], Choice | None]
"""A room → the choice in it; None if the floors alone do not fit."""


def weightiest(ladders: Sequence[Ladder], weights: Sequence[float], least_items: int) -> Choice:
    """The floors with which the weightiest items stay, so many of them."""
    return _floors(ladders, least_items, lambda n: -weights[n])


def cheapest(ladders: Sequence[Ladder], least_items: int) -> Choice:
    """The floors with which as many items stay as cheaply as can be."""
    return _floors(ladders, least_items, lambda n: ladders[n][1].cost)


def _floors(ladders: Sequence[Ladder], least_items: int, order: Callable[[int], float]) -> Choice:
    standing = [n for n, ladder in enumerate(ladders) if len(ladder) > 1]
    staying = set(sorted(standing, key=lambda n: (order(n), n))[:least_items])
    return [int(n in staying) for n in range(len(ladders))]


def best_total(ladders: Sequence[Ladder], weights: Sequence[float], floors: Choice) -> Chooser:
    """The levels whose worth is greatest in all, but for the last steps that do not fit."""
    del weights  # each option's worth holds its item's weight
    steps = sorted(
        step
        for item, (ladder, floor) in enumerate(zip(ladders, floors, strict=True))
        for step in _steps(item, ladder, floor)
    )
    least = cost_of(ladders, floors)

    def chosen_in(room: int) -> Choice | None:
        left = room - least
        if left < 0:
            return None
        chosen = list(floors)
        for _, item, upper in steps:
            if (lower := chosen[item]) < upper:
                ladder = ladders[item]
                cost = ladder[upper].cost - ladder[lower].cost
                if cost <= left:
                    chosen[item] = upper
                    left -= cost
        return chosen

    return chosen_in


def priority_first(ladders: Sequence[Ladder], weights: Sequence[float], floors: Choice) -> Chooser:
    """The most for the weightiest, then for the next: what is left decides (000-51, 52)."""
    order = sorted(range(len(ladders)), key=lambda n: (-weights[n], n))
    least = cost_of(ladders, floors)

    def chosen_in(room: int) -> Choice | None:
        left = room - least
        if left < 0:
            return None
        chosen = list(floors)
        for item in order:
            ladder = ladders[item]
            left += ladder[floors[item]].cost
            chosen[item] = bisect.bisect_right(ladder, left, key=_cost) - 1
            left -= ladder[chosen[item]].cost
        return chosen

    return chosen_in


def all_alike(ladders: Sequence[Ladder], weights: Sequence[float], floors: Choice) -> Chooser:
    """The same level for all, tighter until all fit; then the lightest go (000-62 to 65)."""
    caps = sorted({_height(option) for ladder in ladders for option in ladder[1:]}, reverse=True)
    lightest = sorted(range(len(ladders)), key=lambda n: (weights[n], -n))

    def chosen_in(room: int) -> Choice | None:
        chosen: Choice = []
        for cap in caps:
            chosen = [_at_most(ladder, cap) for ladder in ladders]
            if cost_of(ladders, chosen) <= room:
                return chosen
        over = cost_of(ladders, chosen) - room if chosen else 0
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


def cost_of(ladders: Sequence[Ladder], choice: Choice) -> int:
    """What the chosen options cost together."""
    return sum(ladder[n].cost for ladder, n in zip(ladders, choice, strict=True))


def _cost(option: Option) -> int:
    return option.cost


# --- steps up a ladder ---------------------------------------------------------------------------

_Step = tuple[float, int, int]
"""Worth for a token, negative so that the most is first when sorted; the item; the place of the
option in its ladder that the step leads to."""


def _steps(item: int, ladder: Ladder, floor: int) -> Iterator[_Step]:
    """The steps along the ladder's upper hull, and to each option below it from the hull before.

    Those below the hull are for the case that the hull's next option does not fit.
    """
    hull = _hull(ladder, floor)
    for lower, upper in pairwise(hull):
        yield from (_step(item, ladder, lower, n) for n in range(lower + 1, upper + 1))


def _step(item: int, ladder: Ladder, lower: int, upper: int) -> _Step:
    below, above = ladder[lower], ladder[upper]
    return (below.worth - above.worth) / (above.cost - below.cost), item, upper


def _hull(ladder: Ladder, floor: int) -> list[int]:
    """The options that no mixture of two others beats, from the floor up."""
    hull: list[int] = []
    for n in range(floor, len(ladder)):
        while len(hull) > 1 and not _bends_down(ladder[hull[-2]], ladder[hull[-1]], ladder[n]):
            hull.pop()
        hull.append(n)
    return hull


def _bends_down(a: Option, b: Option, c: Option) -> bool:
    return (b.worth - a.worth) * (c.cost - a.cost) > (c.worth - a.worth) * (b.cost - a.cost)


# --- the same for all ----------------------------------------------------------------------------


def _height(option: Option) -> tuple[int, int]:
    return -_ORDER[option.rung], option.tokens if option.rung is Rung.TRUNCATED else 0


def _at_most(ladder: Ladder, cap: tuple[int, int]) -> int:
    """The highest option up to a cap; the least, if all are higher: no tighter form exists."""
    under = (n for n in range(len(ladder) - 1, 0, -1) if _height(ladder[n]) <= cap)
    return next(under, min(1, len(ladder) - 1))


_ORDER = {rung: place for place, rung in enumerate(Rung)}
