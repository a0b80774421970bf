"""Find sources with nearly the same text in one pass over their words.

A text is represented by the smallest hashes of its runs of four words, which are a fair sample of
all runs. Texts are compared only if they share one of the first few hashes, and only with a few
texts per hash, so that the work stays linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.search.words import number_of, words_of

NEARLY = 0.8
"""Share of common runs above which one text repeats another. A mirrored page or a reprint shares
nine tenths, two articles about one event a few hundredths."""
_SKETCH = 128
_LOOKED_UP = 24
_MOST_COMPARED = 8
_FEWEST_WORDS = 24
_MOST_CHARACTERS = 400_000
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F], np.uint64)
_MIX = np.uint64(0xFF51AFD7ED558CCD)

Sketch = np.ndarray[Any, np.dtype[np.uint64]]


def sketch(text: str) -> Sketch:
    """Return the smallest hashes of a text's runs of words; empty for a short text."""
    words = words_of(text[:_MOST_CHARACTERS].lower())
    if len(words) < _FEWEST_WORDS:
        return np.empty(0, np.uint64)
    numbers = np.fromiter(map(number_of, words), np.uint64, len(words))
    runs = sum(numbers[n : len(numbers) - 3 + n] * factor for n, factor in enumerate(_FACTORS))
    mixed = np.asarray(runs, np.uint64) * _MIX
    hashes: Sketch = np.unique(mixed ^ (mixed >> np.uint64(29)))
    return hashes[:_SKETCH]


def similarity(first: Sketch, second: Sketch) -> float:
    """Return the share of runs that two texts have in common, estimated from their sketches."""
    union = np.union1d(first, second)[:_SKETCH]
    if not len(union):
        return 0.0
    common = np.intersect1d(first, second, assume_unique=True)
    return float(np.isin(union, common, assume_unique=True).sum()) / len(union)


class NearDuplicates:
    """Known texts by name; finds the one that a new text repeats."""

    def __init__(self) -> None:
        self._sketches: dict[str, Sketch] = {}
        self._holders: dict[int, list[str]] = {}

    def add(self, name: str, text_sketch: Sketch) -> tuple[str, float]:
        """Return the text that this one repeats and the share; an empty name if it is new."""
        if not len(text_sketch):
            return "", 0.0
        first = [int(number) for number in text_sketch[:_LOOKED_UP]]
        candidates = {candidate for number in first for candidate in self._holders.get(number, ())}
        nearest = max(
            (
                (similarity(text_sketch, self._sketches[candidate]), candidate)
                for candidate in sorted(candidates)
            ),
            default=(0.0, ""),
        )
        if nearest[0] >= NEARLY:
            return nearest[1], nearest[0]
        self._sketches[name] = text_sketch
        for number in first:
            holders = self._holders.setdefault(number, [])
            if len(holders) < _MOST_COMPARED:
                holders.append(name)
        return "", 0.0
