"""Texts as vectors on this machine: every text has one, and none of them is worth a warning."""

from __future__ import annotations

import math
import warnings

import pytest

from holdfast.models.embedding import WordLlamaEmbedder


def test_a_text_of_nothing_has_a_vector_of_nothing_and_warns_nobody() -> None:
    pytest.importorskip("wordllama", reason="the extra embeddings is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing, something = WordLlamaEmbedder().embed(["", "a harbour in the north"])
    assert not any(nothing)
    assert math.isclose(sum(number * number for number in something), 1.0, rel_tol=1e-3)
