"""The best places, and signals as one score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.fusion import add_signals, deviations, weight_signals
from holdfast.search.top import best, largest

scores = st.lists(st.integers(0, 9), min_size=1, max_size=30)


@given(scores=scores, k=st.integers(1, 40))
def test_the_best_are_the_highest_in_order(scores: list[int], k: int) -> None:
    values = np.array(scores, np.float32)
    places = best(values, k).tolist()
    assert [scores[place] for place in places] == sorted(scores, reverse=True)[:k]
    assert sorted(values[largest(values, k)]) == sorted(values[places])
    assert len(set(places)) == len(places) == min(k, len(scores))


@given(scores=scores)
def test_ties_come_in_their_order_or_reversed(scores: list[int]) -> None:
    values, number = np.array(scores, np.float32), len(scores)
    earlier, later = best(values, number).tolist(), best(values, number, later_first=True).tolist()
    assert earlier == sorted(range(number), key=lambda place: (-scores[place], place))
    assert later == sorted(range(number), key=lambda place: (-scores[place], -place))


def test_signals_are_summed_by_their_weights() -> None:
    signals = {"words": np.array([1.0, 2.0], np.float32), "used": np.ones(1, np.float32)}
    parts = weight_signals(signals, {"words": 2.0, "used": 0.5, "meaning": 3.0})
    assert list(parts) == ["words", "used"]
    assert add_signals(parts.values(), (2,)).tolist() == [2.5, 4.5]
    assert add_signals([], (2,)).tolist() == [0.0, 0.0]


def test_a_signal_that_is_the_same_everywhere_counts_nothing() -> None:
    assert deviations(np.full(3, 7.0, np.float32)).tolist() == [0.0, 0.0, 0.0]
    scaled = deviations(np.array([1.0, 2.0, 3.0], np.float32))
    assert scaled.std() == pytest.approx(1.0)
    assert deviations(np.empty(0, np.float32)).tolist() == []
