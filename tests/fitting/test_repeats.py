"""Runs of lines that stand in earlier results are found in linear time, whatever the lines are."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from holdfast.fitting.repeats import LONGEST, Repeat, hashes, numbers, repeats, telling


def runs_in(lines: list[str], earlier: list[Sequence[int]]) -> list[Repeat]:
    own = numbers(lines, "\n")
    wanted = telling(lines, own)
    places = {h: (n, 0) for n, there in enumerate(earlier) for h in there if h in wanted}
    return repeats(lines, own, places, lambda source: earlier[source[0]])


@pytest.mark.parametrize(
    "lines",
    [
        [""] * 200_000,
        ["a", "b"] * 60_000,
        ["sixteen letters "] * 12_000,
        [f"letters {n % 7}" for n in range(20_000)],
        [f"{n:09}" for n in range(20_000)],
    ],
    ids=["blank", "short", "alike", "seven", "distinct"],
)
def test_looking_for_repeats_takes_linear_time(lines: list[str]) -> None:
    text = "\n".join(lines)[:LONGEST]
    earlier = [hashes(text[k:]) for k in range(8)]
    started = time.process_time()
    runs_in(text.split("\n"), earlier)
    assert time.process_time() - started < 2.0  # 0.1 to 0.3 here; squared, it would be minutes


def test_so_it_does_where_each_of_many_results_has_another_line_of_it() -> None:
    lines = [f"line {n:06}" for n in range(15_000)]
    earlier = [hashes(line) for line in lines[:2_000]]
    started = time.process_time()
    assert runs_in(lines, earlier) == []
    assert time.process_time() - started < 1.0


def test_a_result_of_ten_megabytes_is_not_looked_at() -> None:
    text = "\n".join(f"{n:09} of many" for n in range(500_000))
    started = time.process_time()
    assert not hashes(text)
    assert time.process_time() - started < 0.1
