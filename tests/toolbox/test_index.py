"""The places that each clause of a query gets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.toolbox.tool_search import _fill_places, weights_for

scores = st.integers(1, 30).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 100), min_size=size, max_size=size), min_size=1, max_size=9
    )
)


@settings(deadline=None)
@given(scores=scores, k=st.integers(1, 12))
def test_half_of_the_places_are_the_whole_querys_and_none_is_given_twice(
    scores: list[list[int]], k: int
) -> None:
    rows = np.array(scores, np.float32)
    order = _fill_places(rows, k)
    assert len(order) == len(set(order)) == min(k, rows.shape[1])
    half = order[: (min(k, rows.shape[1]) + 1) // 2]
    assert [rows[0, n] for n in half] == sorted(rows[0], reverse=True)[: len(half)]


def test_the_more_is_asked_for_the_more_places_go_round() -> None:
    query_scores = np.linspace(1, 0.5, 40, dtype=np.float32)
    clauses = [np.where(np.arange(40) == 20 + n, 1.0, 0.1).astype(np.float32) for n in range(6)]
    clause_scores = [
        len(set(_fill_places(np.stack([query_scores, *clauses[:number]]), 10)) - set(range(10)))
        for number in range(7)
    ]
    assert clause_scores == [0, 0, 1, 3, 4, 5, 5]


def test_a_clause_that_is_about_no_tool_takes_no_place() -> None:
    query_scores = np.linspace(1, 0.5, 40, dtype=np.float32)
    rows = np.stack(
        [query_scores, query_scores[::-1], 0.5 * query_scores[::-1], 0.5 * query_scores[::-1]]
    )
    assert _fill_places(rows, 10) == list(range(10))


class Named:
    """An embedder of one kind or the other."""

    name, dimensions = "named", 1

    def __init__(self, *, is_quick: bool) -> None:
        self.is_quick = is_quick

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


def test_meaning_counts_more_where_both_embedders_are_joined() -> None:
    quick, joined = (weights_for(Named(is_quick=each)) for each in (True, False))
    assert (quick["meaning"], joined["meaning"]) == (11.0, 18.0)
    assert "meaning" not in weights_for(None)
