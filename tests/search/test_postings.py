"""Postings that grow, and many queries at once over an index of terms."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.search.bm25 import USUAL, rarity
from holdfast.search.postings import (
    _MIN_RECENT,
    Counts,
    Postings,
    TermIndex,
    decode_counts,
    encode_counts,
    merge_counts,
)

texts = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=9)
queries = st.lists(st.lists(st.integers(0, 15), max_size=6), min_size=1, max_size=4)


def index_of(held: list[list[int]]) -> TermIndex:
    return TermIndex.of(held)


@settings(deadline=None)
@given(held=texts, asked=queries)
def test_queries_looked_up_together_gain_what_each_gains_alone(
    held: list[list[int]], asked: list[list[int]]
) -> None:
    index = index_of(held)
    together = index.look_up(asked)
    alone = [index.look_up([terms]) for terms in asked]
    for n, look_up in enumerate(alone):
        assert (index.gains(together)[n] == index.gains(look_up)[0]).all()
        assert index.mass_of(together)[n] == pytest.approx(float(index.mass_of(look_up)[0]))
        rare = {term for term in asked[n] if any(term in each for each in held)}
        assert len(look_up.places) == len(rare)
        shared = index.shared(look_up)[0]
        for text, share in zip(held, shared, strict=True):
            assert (share > 0) == bool(rare & set(text))


@settings(deadline=None)
@given(held=texts, asked=queries, most=st.integers(0, 12))
def test_of_each_query_the_rarest_terms_are_looked_at(
    held: list[list[int]], asked: list[list[int]], most: int
) -> None:
    index = index_of(held)
    all_of = index.look_up(asked)
    few = index.rarest(all_of, most)
    for n in range(len(asked)):
        rarities = sorted(index.rarity[all_of.places[all_of.rows == n]], reverse=True)
        chosen = sorted(index.rarity[few.places[few.rows == n]], reverse=True)
        assert chosen == rarities[: len(chosen)]
        holding = [sum(term in text for text in held) for term in set(asked[n])]
        assert len(chosen) == len(rarities) or sum(holding) > most


@settings(deadline=None)
@given(held=texts, weights=st.dictionaries(st.integers(0, 15), st.floats(0.1, 2.0), max_size=5))
def test_scores_are_bm25_by_the_book(held: list[list[int]], weights: dict[int, float]) -> None:
    scores = TermIndex.of(held).scores(weights)
    mean = max(sum(map(len, held)) / len(held), 1e-6)
    for text, score in zip(held, scores, strict=True):
        expected = sum(
            USUAL.gains(
                weight * rarity(sum(term in each for each in held), len(held)),
                text.count(term),
                USUAL.norms(len(text), mean),
            )
            for term, weight in weights.items()
            if term in text
        )
        assert score == pytest.approx(expected, rel=1e-4)


def test_an_index_of_nothing_finds_nothing() -> None:
    assert TermIndex.of([]).scores({1: 1.0}).tolist() == []
    assert TermIndex.of([[], []]).scores({1: 1.0}).tolist() == [0.0, 0.0]


@given(held=texts)
def test_what_is_encoded_is_decoded_in_columns(held: list[list[int]]) -> None:
    counters = [Counter(terms) for terms in held]
    columns = decode_counts([encode_counts(each) for each in counters], first=7)
    rows = zip(columns.texts.tolist(), columns.terms.tolist(), columns.counts.tolist(), strict=True)
    assert sorted(rows) == sorted(
        (n, term, count) for n, each in enumerate(counters, 7) for term, count in each.items()
    )


def test_a_count_is_stored_in_a_byte() -> None:
    assert encode_counts({3: 1_000}) == (b"\3\0\0\0", b"\xff")


@given(held=texts)
def test_merged_columns_hold_each_pair_once(held: list[list[int]]) -> None:
    pairs = [(n % 3, term) for n, terms in enumerate(held) for term in terms]
    columns = merge_counts(
        Counts(
            np.array([term for _, term in pairs], np.uint32),
            np.array([text for text, _ in pairs], np.int32),
            np.ones(len(pairs), np.int64),
        )
    )
    rows = zip(columns.texts.tolist(), columns.terms.tolist(), columns.counts.tolist(), strict=True)
    assert {(text, term): count for text, term, count in rows} == Counter(pairs)
    assert len(columns.terms) == len(set(pairs))


def test_postings_that_grew_hold_what_was_appended_in_its_order() -> None:
    chance = np.random.default_rng(1)
    postings = Postings()
    expected: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for text in range(0, 3_000, 10):
        terms, counts = chance.integers(0, 500, 100), chance.integers(1, 9, 100)
        texts_of = np.repeat(np.arange(text, text + 10), 10)
        postings.extend(Counts(terms, texts_of, counts))
        for term, of, count in zip(terms, texts_of, counts, strict=True):
            expected[int(term)].append((int(of), int(count)))
        if text % 500 == 0:
            assert _held(postings, 7) == expected[7]
    assert _MIN_RECENT < 3_000 * 10
    assert all(_held(postings, term) == expected[term] for term in range(501))


def _held(postings: Postings, term: int) -> list[tuple[int, float]]:
    held, counts = postings.of(term)
    return list(zip(held.tolist(), counts.tolist(), strict=True))
