"""Two embedders as one: a text's vectors behind each other, so that what is near is near by both.

joined: after protocol, before embedding, which chooses. The two are never compared with each other:
each part of a vector meets the same part of another, and the product of two joined vectors is the
mean of both likenesses, by their shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.models.protocol import Embedder


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
