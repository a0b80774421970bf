"""Many queries at once in the index, and the places that each of them gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.toolbox.index import Postings
from holdfast.toolbox.searching import _filled, weights_for

texts = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=9)
queries = st.lists(st.lists(st.integers(0, 15), max_size=6), min_size=1, max_size=4)


def postings_of(held: list[list[int]]) -> Postings:
    counts = [Counter(terms) for terms in held]
    owners = [n for n, each in enumerate(counts) for _ in each]
    terms = [term for each in counts for term in each]
    times = [number for each in counts for number in each.values()]
    return Postings(
        np.array(terms, np.uint32),
        np.array(owners, np.int64),
        np.array(times, np.int64),
        len(held),
    )


@settings(deadline=None)
@given(held=texts, asked=queries)
def test_queries_looked_up_together_gain_what_each_gains_alone(
    held: list[list[int]], asked: list[list[int]]
) -> None:
    postings = postings_of(held)
    together = postings.look_up(asked)
    alone = [postings.look_up([terms]) for terms in asked]
    for n, look_up in enumerate(alone):
        assert (postings.gains(together)[n] == postings.gains(look_up)[0]).all()
        assert postings.mass_of(together)[n] == pytest.approx(float(postings.mass_of(look_up)[0]))
        rare = {term for term in asked[n] if any(term in each for each in held)}
        assert len(look_up.places) == len(rare)
        shared = postings.shared(look_up)[0]
        for text, share in zip(held, shared, strict=True):
            assert (share > 0) == bool(rare & set(text))


@settings(deadline=None)
@given(held=texts, asked=queries, most=st.integers(0, 12))
def test_of_each_query_the_rarest_terms_are_looked_at(
    held: list[list[int]], asked: list[list[int]], most: int
) -> None:
    postings = postings_of(held)
    all_of = postings.look_up(asked)
    few = postings.rarest(all_of, most)
    for n in range(len(asked)):
        rarities = sorted(postings.rarity[all_of.places[all_of.rows == n]], reverse=True)
        chosen = sorted(postings.rarity[few.places[few.rows == n]], reverse=True)
        assert chosen == rarities[: len(chosen)]
        holding = [sum(term in text for text in held) for term in set(asked[n])]
        assert len(chosen) == len(rarities) or sum(holding) > most


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
    order = _filled(rows, k)
    assert len(order) == len(set(order)) == min(k, rows.shape[1])
    half = order[: (min(k, rows.shape[1]) + 1) // 2]
    assert [rows[0, n] for n in half] == sorted(rows[0], reverse=True)[: len(half)]


def test_the_more_is_asked_for_the_more_places_go_round() -> None:
    whole = np.linspace(1, 0.5, 40, dtype=np.float32)
    clauses = [np.where(np.arange(40) == 20 + n, 1.0, 0.1).astype(np.float32) for n in range(6)]
    others = [
        len(set(_filled(np.stack([whole, *clauses[:number]]), 10)) - set(range(10)))
        for number in range(7)
    ]
    assert others == [0, 0, 1, 3, 4, 5, 5]


def test_a_clause_that_is_about_no_tool_takes_no_place() -> None:
    whole = np.linspace(1, 0.5, 40, dtype=np.float32)
    rows = np.stack([whole, whole[::-1], 0.5 * whole[::-1], 0.5 * whole[::-1]])
    assert _filled(rows, 10) == list(range(10))


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
