"""Texts as vectors on this machine: every text has one, and none of them is worth a warning."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.models import embedding
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


WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS | st.sampled_from(["the", "don't", "e.g.", "Oslo,"]), max_size=12))
def test_a_text_is_worth_what_its_words_are(words: list[str]) -> None:
    """Tokens of words are cached, which must not change the tokens of a text."""
    pytest.importorskip("wordllama", reason="the extra embeddings is not installed")
    text = " ".join(words)
    assume(text.split() == words)
    by_words = [token for word in words for token in embedding._tokens(word)]
    assert by_words == list(embedding._encoded(text))


def test_the_import_of_wordllama_does_not_have_every_package_log() -> None:
    """It configures logging; HTTP clients would write whole addresses then, keys among them."""
    pytest.importorskip("wordllama", reason="the extra embeddings is not installed")
    program = (
        "import logging; from holdfast.models.embedding import WordLlamaEmbedder;"
        "WordLlamaEmbedder().embed(['tide']);"
        "root = logging.getLogger(); print(root.level == logging.WARNING, root.handlers)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout.split() == [b"True", b"[]"]
