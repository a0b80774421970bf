"""Three ways to choose levels, on numbers alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.allocate.fidelity import Rung
from holdfast.allocate.level_choice import (
    WAYS,
    Ladder,
    Option,
    all_alike,
    best_total,
    cheapest_floors,
    heaviest_floors,
    priority_first,
    total_cost,
)

DROPPED = Option(Rung.DROPPED, 0, 0, 0.0)


def ladder(*steps: tuple[Rung, int, float]) -> list[Option]:
    return [DROPPED, *(Option(rung, cost, cost, worth) for rung, cost, worth in steps)]


def worth_of(ladders: Sequence[Ladder], choice: list[int]) -> float:
    return sum(options[n].worth for options, n in zip(ladders, choice, strict=True))


FULL = ladder(
    (Rung.TRUNCATED, 4, 0.1),
    (Rung.HEADLINE, 10, 0.35),
    (Rung.KEY_POINTS, 25, 0.6),
    (Rung.CONDENSED, 50, 0.8),
    (Rung.RAW, 100, 1.0),
)


@st.composite
def ladders_of(draw: st.DrawFn, most: int = 6) -> list[list[Option]]:
    ladders = []
    for _ in range(draw(st.integers(1, most))):
        costs = sorted(draw(st.sets(st.integers(1, 40), min_size=1, max_size=4)))
        worths = sorted(
            draw(st.sets(st.integers(1, 100), min_size=len(costs), max_size=len(costs)))
        )
        rungs = list(Rung)[4 - len(costs) : 4][::-1]
        ladders.append(ladder(*zip(rungs, costs, worths, strict=True)))
    return ladders


def test_the_best_total_takes_what_brings_most_for_its_tokens() -> None:
    choose = best_total([FULL, FULL], [1.0, 1.0], [0, 0])
    assert choose(20) == [2, 2]  # two headlines are worth more than one of key points
    assert choose(200) == [5, 5]
    assert choose(14) == [2, 1]  # a beginning where no second headline fits
    assert choose(0) == [0, 0]


def test_priority_first_gives_all_to_the_weightiest() -> None:
    choose = priority_first([FULL, FULL, FULL], [0.1, 0.9, 0.5], [0, 0, 0])
    assert choose(155) == [1, 5, 4]
    assert priority_first([FULL, FULL], [0.1, 0.9], [1, 0])(103) == [4, 4]  # room for the floor


def test_all_alike_goes_down_together_and_then_drops_the_lightest() -> None:
    choose = all_alike([FULL[:-1], FULL[:-1], FULL[:-1]], [0.1, 0.9, 0.5], [0, 0, 0])
    assert choose(150) == [4, 4, 4]
    assert choose(80) == [3, 3, 3]
    assert choose(30) == [2, 2, 2]
    assert choose(12) == [1, 1, 1]
    assert choose(9) == [0, 1, 1]
    assert choose(3) == [0, 0, 0]


def test_floors_keep_the_weightiest_or_the_cheapest() -> None:
    dear = ladder((Rung.RAW, 90, 1.0))
    assert heaviest_floors([dear, FULL, FULL], [0.9, 0.5, 0.1], 2) == [1, 1, 0]
    assert cheapest_floors([dear, FULL, FULL], 2) == [0, 1, 1]
    assert heaviest_floors([[DROPPED], FULL], [0.9, 0.1], 1) == [
        0,
        1,
    ]  # without a form it cannot stay


@pytest.mark.parametrize("way", WAYS)
@given(ladders=ladders_of(), room=st.integers(0, 160), data=st.data())
def test_no_way_exceeds_the_room_or_goes_below_a_floor(
    way: str, ladders: list[list[Option]], room: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.floats(0.01, 1), min_size=len(ladders), max_size=len(ladders)))
    floors = heaviest_floors(ladders, weights, data.draw(st.integers(0, len(ladders))))
    choice = WAYS[way](ladders, weights, floors)(room)  # type: ignore[index]
    if choice is None:
        assert total_cost(ladders, floors) > room or way == "all_alike"
    else:
        assert total_cost(ladders, choice) <= room
        assert all(n >= floor for n, floor in zip(choice, floors, strict=True))


@given(ladders=ladders_of(), room=st.integers(0, 160), more=st.integers(0, 60))
def test_a_larger_room_is_never_worth_less(
    ladders: list[list[Option]], room: int, more: int
) -> None:
    choose = best_total(ladders, [1.0] * len(ladders), [0] * len(ladders))
    smaller, larger = choose(room), choose(room + more)
    assert smaller is not None
    assert larger is not None
    assert worth_of(ladders, larger) >= worth_of(ladders, smaller) - 1e-9


@given(ladders=ladders_of(4), room=st.integers(0, 120))
def test_the_best_total_misses_the_optimum_by_less_than_one_step(
    ladders: list[list[Option]], room: int
) -> None:
    """The greedy choice loses less than the worth of one step that did not fit."""
    choices = itertools.product(*(range(len(options)) for options in ladders))
    fitting = (list(c) for c in choices if total_cost(ladders, list(c)) <= room)
    optimum = max(worth_of(ladders, choice) for choice in fitting)
    choice = best_total(ladders, [1.0] * len(ladders), [0] * len(ladders))(room)
    assert choice is not None
    largest_step = max(options[-1].worth for options in ladders)
    assert worth_of(ladders, choice) >= optimum - largest_step
