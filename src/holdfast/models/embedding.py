"""Vectors of texts, on this machine: WordLlama's if it is installed, or as configured.

The packages are optional, and imported when a text is embedded; they include their weights, and
nothing is downloaded. Without WordLlama there is no embedder, and searches use words; MiniLM is
selected by name, and its absence is an error.

Two embedders may be joined: a text's vectors are concatenated, so that texts are near if both find
them near. Their vectors are never compared with each other: each part meets the same part of
another vector, and the product of two joined vectors is the mean of both similarities, by their
shares.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast._lazy import LazyModule
from holdfast.errors import SettingsError
from holdfast.extras import how_to_install, is_installed
from holdfast.models.minilm import MiniLmEmbedder
from holdfast.models.protocol import Embedder
from holdfast.settings import Settings

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")


class JoinedEmbedder:
    """What two embedders make of a text; the second has a share of the likeness."""

    def __init__(self, first: Embedder, second: Embedder, share: float) -> None:
        self._parts = ((first, (1 - share) ** 0.5), (second, share**0.5))
        self.name = f"{first.name} + {share} {second.name}"
        self.dimensions = first.dimensions + second.dimensions
        self.is_quick = first.is_quick and second.is_quick

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector of length 1 for each text; see `Embedder`."""
        if not texts:
            return []
        sides = [np.asarray(of.embed(texts), np.float32) * scale for of, scale in self._parts]
        vectors: list[list[float]] = np.concatenate(sides, axis=1).tolist()
        return vectors


_PACKAGE = "wordllama"
_DIMENSIONS = 256
_MOST_CHARACTERS = 20_000
"""Of one text: its vector is a mean, which what follows changes little."""
_FEW_WORDS, _LONGEST_WORD = 400, 40
"""Words and characters of a query: longer ones are documents or data, not worth caching."""
_MINILM_SHARE = 0.5
"""Of the likeness of a tool, where WordLlama has the rest: see docs/discussions/tools.md."""


@cache
def open_embedder() -> Embedder | None:
    """The embedder of this machine; None if there is none."""
    return WordLlamaEmbedder() if importlib.util.find_spec(_PACKAGE) is not None else None


def recall_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder of recall, from the settings; None for words only.

    Raises:
        SettingsError: MiniLM is selected, and not installed.
    """
    chosen = settings.embedder
    if chosen == "words":
        return None
    return open_embedder() if chosen == "wordllama" else _minilm()


def tool_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder of the tool search, from the settings; None for words only.

    MiniLM is combined with WordLlama, if that is installed.

    Raises:
        SettingsError: MiniLM is selected, and not installed.
    """
    chosen = settings.embedder
    if chosen == "words":
        return None
    wordllama = open_embedder()
    if chosen == "wordllama":
        return wordllama
    minilm = _minilm()
    return minilm if wordllama is None else JoinedEmbedder(wordllama, minilm, _MINILM_SHARE)


def _minilm() -> MiniLmEmbedder:
    if not is_installed("embed"):
        raise SettingsError(
            "MiniLM is not installed",
            where="embedder",
            fix=f"{how_to_install('embed')} Or set embedder to wordllama.",
        )
    return MiniLmEmbedder()


class WordLlamaEmbedder:
    """WordLlama's smallest vectors: 256 numbers, 16 MB of weights, no network and no GPU."""

    name = "wordllama:l2_supercat"
    dimensions = _DIMENSIONS
    is_quick = True

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector of length 1 for each text; see `Embedder`."""
        return [_mean(text[:_MOST_CHARACTERS]) for text in texts]


def _mean(text: str) -> list[float]:
    """The mean of a text's tokens, of length 1.

    WordLlama's own does the same for all texts together, each as long as the longest of them. A
    query is embedded with its clauses, whose words are its own: these are taken apart once.
    """
    words = text.split()
    # No token of its vocabulary spans two words; several spaces may be one token.
    plain = len(words) < _FEW_WORDS and " ".join(words) == text
    plain = plain and max(map(len, words), default=0) <= _LONGEST_WORD
    tokens = list(chain.from_iterable(map(_tokens, words))) if plain else _encoded(text)
    if not tokens:
        return [0.0] * _DIMENSIONS
    mean = np.take(_weights().embedding, tokens, axis=0, mode="clip").mean(axis=0)
    vector: list[float] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).tolist()
    return vector


@lru_cache(maxsize=32_768)
def _tokens(word: str) -> Sequence[int]:
    """Return the tokens of a word; questions have few words."""
    return tuple(_encoded(word))


def _encoded(text: str) -> Sequence[int]:
    sound = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text to it
    tokens: list[int] = _weights().tokenizer.encode(sound, add_special_tokens=False).ids
    return tokens


@cache
def _weights() -> Any:
    """The weights, read once: they take 40 ms."""
    with _logging_as_it_is():
        import wordllama  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: PLC0415 - optional

        # Its own folder holds both; anywhere else it would look for them, and then fetch them.
        folder = Path(wordllama.__file__).parent
        return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _logging_as_it_is() -> Iterator[None]:
    """Undo the import's change of logging, which would let every package log everything.

    HTTP clients would then log whole addresses, with the keys in them.
    """
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
