"""Runs of lines from earlier results are found in linear time, for any lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from holdfast.fitting.repeats import LONGEST, Repeat, hashes, numbers, repeats, telling
from tests.support.steps import is_linear, steps


def runs_in(lines: list[str], earlier: list[Sequence[int]]) -> list[Repeat]:
    own = numbers(lines, "\n")
    wanted = telling(lines, own)
    places = {h: (n, 0) for n, there in enumerate(earlier) for h in there if h in wanted}
    return repeats(lines, own, places, lambda source: earlier[source[0]])


@pytest.mark.parametrize(
    "line",
    [
        lambda _: "",
        lambda n: "ab"[n % 2],
        lambda _: "sixteen letters ",
        lambda n: f"letters {n % 7}",
        lambda n: f"{n:09}",
    ],
    ids=["blank", "short", "alike", "seven", "distinct"],
)
def test_looking_for_repeats_takes_linear_time(line: Callable[[int], str]) -> None:
    def work(size: int) -> Callable[[], object]:
        text = "\n".join(map(line, range(size)))
        assert len(text) <= LONGEST, "longer ones are not looked at"
        earlier = [hashes(text[k:]) for k in range(8)]
        return lambda: runs_in(text.split("\n"), earlier)

    assert is_linear(work, 2_500)


def test_so_it_does_where_each_of_many_results_has_another_line_of_it() -> None:
    def work(size: int) -> Callable[[], object]:
        lines = [f"line {n:06}" for n in range(size)]
        earlier = [hashes(line) for line in lines[: size // 8]]
        assert runs_in(lines, earlier) == []
        return lambda: runs_in(lines, earlier)

    assert is_linear(work, 2_500)


def test_a_result_of_ten_megabytes_is_not_looked_at() -> None:
    text = "\n".join(f"{n:09} of many" for n in range(500_000))
    assert not hashes(text)
    assert steps(lambda: hashes(text)) < 10
