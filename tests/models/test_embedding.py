"""Texts as vectors on this machine: every text has one, and none of them is worth a warning."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import pytest

from holdfast.models.embedding import WordLlamaEmbedder


def test_a_text_of_nothing_has_a_vector_of_nothing_and_warns_nobody() -> None:
    pytest.importorskip("wordllama", reason="the extra embeddings is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing, something = WordLlamaEmbedder().embed(["", "a harbour in the north"])
    assert not any(nothing)
    assert math.isclose(sum(number * number for number in something), 1.0, rel_tol=1e-3)


def test_vectors_are_those_of_wordllama() -> None:
    wordllama = pytest.importorskip("wordllama", reason="the extra embeddings is not installed")
    folder = Path(wordllama.__file__).parent
    own = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = ["a harbour in the north", "Ωmega — 北京", "x", "one two three. " * 300]
    vectors = WordLlamaEmbedder().embed(texts)
    for vector, expected in zip(vectors, own.embed(texts, norm=True).tolist(), strict=True):
        assert vector == pytest.approx(expected, abs=1e-6)
