"""BM25 for one text and for arrays of them."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.search.bm25 import Bm25, rarity


def test_a_term_is_worth_more_the_fewer_texts_hold_it() -> None:
    worths = [rarity(holders, 100) for holders in (1, 10, 50, 100)]
    assert worths == sorted(worths, reverse=True)
    assert worths[-1] > 0


def test_repetition_saturates_and_length_costs() -> None:
    bm25 = Bm25()
    norms = bm25.norms(np.array([10.0, 10.0, 10.0, 100.0]), 10.0)
    once, twice, often, long = bm25.gains(1.0, np.array([1.0, 2.0, 1000.0, 2.0]), norms)
    assert once < twice < often < bm25.k1 + 1
    assert long < twice
    assert (Bm25(b=0).norms(100.0, 10.0)) == Bm25(b=0).norms(1.0, 10.0)


def test_one_text_gains_what_it_gains_among_others() -> None:
    bm25 = Bm25(b=0.5)
    lengths, counts = [3.0, 9.0], [1.0, 4.0]
    together = bm25.gains(2.0, np.array(counts), bm25.norms(np.array(lengths), 6.0))
    alone = [
        bm25.gains(2.0, n, bm25.norms(size, 6.0)) for n, size in zip(counts, lengths, strict=True)
    ]
    assert together.tolist() == pytest.approx(alone)
