"""Recorded sessions cost no more with Holdfast than without; `make worse` replays all of them."""

from __future__ import annotations

import pytest
from benchmarks.worse.prompt_cache import Prices, UntouchedCache
from benchmarks.worse.replay import Growth
from benchmarks.worse.report import MOST_RATIO, Options, has_data, measured

EVERY = 60
"""Each 60th session: some twenty seconds."""

needs_sessions = pytest.mark.skipif(
    not has_data(), reason="recorded sessions are not on this machine; set HOLDFAST_DATA"
)


@needs_sessions
def test_no_recorded_session_costs_more_than_untouched() -> None:
    costs = list(measured(Options(every=EVERY)))
    assert len(costs) > 20
    assert {cost.id: cost.ratio for cost in costs if cost.ratio > MOST_RATIO} == {}
    assert {cost.id: cost.worst for cost in costs if cost.above} == {}
    assert {cost.id: cost.breaks for cost in costs if cost.breaks} == {}
    assert any(cost.ratio < 1 for cost in costs)


def test_a_request_may_grow_by_80_tokens_or_two_percent() -> None:
    assert Growth(0, 1_000, 1_080).excess == pytest.approx(1.0)
    assert Growth(0, 10_000, 10_200).excess == pytest.approx(1.0)
    assert Growth(0, 10_000, 10_201).excess > 1


def test_a_prefix_is_read_from_the_cache_until_it_expires() -> None:
    cache = UntouchedCache(Prices(read=0.1, write=1.25, life=300.0, marked=True))
    sizes_and_times = ((2_000, 0.0), (3_000, 100.0), (4_000, 500.0))
    costs = [cache.cost(size, at, starts_over=False, frame=0.0) for size, at in sizes_and_times]
    assert costs == pytest.approx([2_500.0, 200.0 + 1_250.0, 5_000.0])


def test_nothing_shorter_than_1024_tokens_is_cached() -> None:
    cache = UntouchedCache(Prices(read=0.1, write=1.0, life=3_600.0, marked=False))
    assert cache.cost(1_000, 0.0, starts_over=False, frame=0.0) == 1_000
    assert cache.cost(1_100, 1.0, starts_over=False, frame=0.0) == 1_100
    assert cache.cost(1_200, 2.0, starts_over=False, frame=0.0) == pytest.approx(110 + 100)
