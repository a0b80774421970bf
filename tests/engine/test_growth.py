"""The cost of a known turn does not grow with the conversation: in calls, not in seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from benchmarks import effort

SHORT, LONG = 60, 600

WAYS: dict[str, Callable[[int], int]] = {
    "fit with state": lambda n: effort.fitted_on(n, 2.0),
    "fit with state, folded": lambda n: effort.fitted_on(n, 0.5),
    "a session": lambda n: effort.went_on(effort.chat, "openai-chat", n),
    "a session, folded": lambda n: effort.went_on(effort.chat, "openai-chat", n, 0.5),
    "a session, results cited": lambda n: effort.went_on(
        effort.cited_last, "openai-chat", n, cites=True
    ),
    "a session, marks moved": lambda n: effort.went_on(effort.marked, "anthropic", n),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_known_turn_takes_the_same_calls_behind_any_history(way: str) -> None:
    WAYS[way](SHORT)  # warm up
    short = WAYS[way](SHORT)
    assert WAYS[way](LONG) <= short * 1.05


def test_counting_on_takes_the_same_calls_behind_any_history() -> None:
    # From 64 KB on, a body that continues another keeps its dialect, which is shorter.
    assert effort.counted_on(LONG * 2) <= effort.counted_on(SHORT)


def test_first_sight_grows_no_faster_than_the_conversation() -> None:
    effort.first_sight(SHORT)
    each = effort.first_sight(SHORT) / SHORT, effort.first_sight(LONG) / LONG
    assert each[1] <= each[0] * 1.05
