"""Vectors as signed bytes: the direction stays, whichever sign the largest number has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.facts.vectors import cosines, quantized

numbers = st.lists(st.integers(-100, 100).map(lambda n: n / 100), min_size=4, max_size=4)


class Given:
    """An embedder whose vectors are given."""

    name = "given"
    dimensions = 4
    is_quick = True

    def __init__(self, vectors: Sequence[Sequence[float]]) -> None:
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [list(vector) for vector in self._vectors[: len(texts)]]


@given(vectors=st.lists(numbers, min_size=1, max_size=3))
def test_every_byte_is_in_proportion_to_the_largest_number(vectors: list[list[float]]) -> None:
    rows = quantized(Given(vectors), ["text"] * len(vectors))
    for row, vector in zip(rows, vectors, strict=True):
        largest = max(map(abs, vector)) or 1.0
        expected = [number / largest * 127 for number in vector]
        assert np.allclose(np.frombuffer(row, np.int8), expected, atol=0.51)


def test_a_vector_whose_largest_number_is_negative_keeps_its_direction() -> None:
    one, other = quantized(Given([[-0.9, 0.1, 0.1, 0.4], [0.9, -0.1, -0.1, -0.4]]), ["a", "b"])
    both = np.stack([np.frombuffer(each, np.int8) for each in (one, other)])
    assert np.allclose(cosines(one, both), [1.0, -1.0], atol=0.01)


def test_no_texts_give_no_vectors() -> None:
    assert quantized(Given([]), []) == []
