"""Texts as vectors, on this machine: WordLlama's where it is installed, or as the settings choose.

embedding: after minilm. The packages are optional and imported when the first text is embedded;
their weights come with them, and nothing is ever fetched. Where WordLlama is not installed there is
no embedder, and whoever wants one goes by words; MiniLM is asked for by name, and missed by name.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import SettingsError
from holdfast.models.minilm import MiniLmEmbedder, is_installed
from holdfast.models.protocol import Embedder
from holdfast.settings import Settings

_PACKAGE = "wordllama"
_DIMENSIONS = 256
_MOST_CHARACTERS = 20_000
"""Of one text: its vector is a mean, which what follows changes little."""


@cache
def open_embedder() -> Embedder | None:
    """The embedder of this machine; None if there is none."""
    return WordLlamaEmbedder() if importlib.util.find_spec(_PACKAGE) is not None else None


def recall_embedder(settings: Settings) -> Embedder | None:
    """By which meaning recall goes, as the settings say; None: by words alone.

    Raises:
        SettingsError: MiniLM is asked for, and not installed.
    """
    chosen = settings.recall_embedder
    if chosen == "words":
        return None
    if chosen == "wordllama":
        return open_embedder()
    if not is_installed():
        raise SettingsError(
            "MiniLM is not installed",
            where="recall_embedder",
            fix="pip install 'holdfast[embed]', or set recall_embedder to wordllama.",
        )
    return MiniLmEmbedder()


class WordLlamaEmbedder:
    """WordLlama's smallest vectors: 256 numbers, 16 MB of weights, no network and no GPU."""

    name = "wordllama:l2_supercat"
    dimensions = _DIMENSIONS
    is_quick = True

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector of length 1 for each text; see `Embedder`."""
        if not texts:
            return []
        shown = [text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        # WordLlama divides a text without a known token by its length of nothing.
        with np.errstate(invalid="ignore"):
            vectors: list[list[float]] = _weights().embed(shown, norm=True).tolist()
        zeros = [0.0] * _DIMENSIONS
        return [zeros if math.isnan(vector[0]) else vector for vector in vectors]


@cache
def _weights() -> Any:
    """The weights, read once: they take 40 ms."""
    import wordllama  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 - optional

    # Its own folder holds both; anywhere else it would look for them, and then fetch them.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
