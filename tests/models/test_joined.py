"""Two embedders as one: likenesses are the mean of both, and neither meets the other's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models.embedding import JoinedEmbedder, open_embedder, tool_embedder
from holdfast.settings import Settings


def alike(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


class Written:
    """An embedder whose vectors are given."""

    is_quick = True

    def __init__(self, name: str, vectors: dict[str, tuple[float, ...]]) -> None:
        self.name = name
        self._vectors = vectors
        self.dimensions = len(next(iter(vectors.values())))

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self._vectors[text] for text in texts]


numbers = st.floats(-1, 1, width=32)


@given(
    st.tuples(numbers, numbers, numbers),
    st.tuples(numbers, numbers, numbers),
    st.tuples(numbers, numbers),
    st.tuples(numbers, numbers),
    st.floats(0, 1),
)
def test_the_likeness_is_the_mean_of_both_by_their_shares(
    a: tuple[float, ...],
    b: tuple[float, ...],
    c: tuple[float, ...],
    d: tuple[float, ...],
    share: float,
) -> None:
    joined = JoinedEmbedder(
        Written("first", {"x": a, "y": b}), Written("second", {"x": c, "y": d}), share
    )
    one, other = joined.embed(["x", "y"])
    assert len(one) == joined.dimensions == 5
    expected = (1 - share) * alike(a, b) + share * alike(c, d)
    assert alike(one, other) == pytest.approx(expected, abs=1e-5)


def test_vectors_of_other_shares_or_embedders_are_never_compared() -> None:
    first, second = Written("a", {"x": (1.0,)}), Written("b", {"x": (1.0,)})
    names = {
        JoinedEmbedder(one, other, share).name
        for one, other in ((first, second), (second, first))
        for share in (0.5, 0.6)
    }
    assert len(names | {first.name, second.name}) == 6
    assert JoinedEmbedder(first, second, 0.5).embed([]) == []


def test_the_settings_choose() -> None:
    assert tool_embedder(Settings(embedder="words")) is None
    assert tool_embedder(Settings()) is open_embedder()
    both = tool_embedder(Settings(embedder="minilm"))
    assert both is not None
    assert not both.is_quick
    assert "wordllama" in both.name
    assert "minilm" in both.name
