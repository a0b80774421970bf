"""Vectors as signed bytes: the direction stays, whichever sign the largest number has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.answer_cache import vectors as of_answers
from holdfast.search.vectors import SignSketches, VectorColumn, quantise, unit_rows

numbers = st.lists(st.integers(-100, 100).map(lambda n: n / 100), min_size=4, max_size=4)


@given(vectors=st.lists(numbers, min_size=1, max_size=3))
def test_every_byte_is_in_proportion_to_the_largest_number(vectors: list[list[float]]) -> None:
    for row, vector in zip(quantise(vectors), vectors, strict=True):
        largest = max(map(abs, vector)) or 1.0
        assert np.allclose(row, [number / largest * 127 for number in vector], atol=0.51)


def test_no_texts_give_no_vectors() -> None:
    assert len(quantise([])) == 0


def column_of(vectors: list[list[float]]) -> VectorColumn:
    column = VectorColumn(len(vectors[0]))
    for vector in vectors:
        column.extend(quantise([vector]))
    return column


def test_a_vector_whose_largest_number_is_negative_keeps_its_direction() -> None:
    vectors = [[-0.9, 0.1, 0.1, 0.4], [0.9, -0.1, -0.1, -0.4], [0.0, 0.0, 0.0, 0.0]]
    column = column_of(vectors)
    one = unit_rows(quantise(vectors[:1]))[0]
    assert np.allclose(column.cosines(one), [1.0, -1.0, 0.0], atol=0.01)
    assert column.is_known.tolist() == [True, True, False]
    assert np.allclose(column.cosines(one, np.array([2, 0])), [0.0, 1.0], atol=0.01)


def test_vectors_that_were_appended_in_blocks_are_compared_as_all_at_once() -> None:
    chance = np.random.default_rng(3)
    rows = quantise(chance.normal(size=(5_000, 8)).tolist())
    together, apart = VectorColumn(8), VectorColumn(8)
    together.extend(rows)
    for start in range(0, len(rows), 700):
        apart.extend(rows[start : start + 700])
    vector = unit_rows(rows[:1])[0]
    assert (together.cosines(vector) == apart.cosines(vector)).all()
    assert together.cosines(vector)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("dimensions", [8, 64, 100, 256])
def test_sketches_tell_near_from_far(dimensions: int) -> None:
    rows = quantise(np.random.default_rng(dimensions).normal(size=(20, dimensions)).tolist())
    sketches = SignSketches(dimensions)
    sketches.extend(rows[:10])
    sketches.extend(rows[10:])
    likely = sketches.cosines(rows[12])
    assert len(likely) == 20
    assert int(likely.argmax()) == 12
    assert likely[12] == pytest.approx(1.0)
    assert sketches.cosines(-rows[12])[12] < -0.9


@given(one=numbers, others=st.lists(numbers, max_size=4))
def test_stored_vectors_of_questions_are_compared_by_their_direction(
    one: list[float], others: list[list[float]]
) -> None:
    stored = [*map(of_answers.encoded, others), b"", b"of another embedder"]
    cosines = of_answers.cosines(of_answers.encoded(one), stored)
    assert len(cosines) == len(stored)
    assert cosines[-2:] == [0.0, 0.0]
    for other, cosine in zip(others, cosines, strict=False):
        lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
        expected = float(np.dot(one, other)) / lengths if lengths else 0.0
        assert cosine == pytest.approx(expected, abs=0.02)
