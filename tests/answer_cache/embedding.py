"""An embedder for tests: texts with the same words are near each other, and no weights are read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence


class WordsEmbedder:
    """A direction for each word, and their sum for a text."""

    name = "words"
    dimensions = 32
    is_quick = True

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        sums = [0.0] * self.dimensions
        for word in text.lower().split():
            for n, byte in enumerate(hashlib.sha256(word.encode()).digest()):
                sums[n] += byte - 127.5
        length = math.sqrt(sum(number * number for number in sums))
        return [number / length for number in sums] if length else sums
