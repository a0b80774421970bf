"""Vectors as they are kept: a signed byte for each number.

vectors: after protocol. What memory and toolbox keep of an embedder's vectors; a cosine changes by
0.001 at most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def quantised(vectors: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    """Vectors of length 1 as whole numbers to 127, each by its own greatest."""
    exact = np.asarray(vectors, dtype=np.float32)
    if exact.size == 0:
        return np.zeros((0, 0), dtype=np.int8)
    greatest = np.abs(exact).max(axis=1, keepdims=True)
    whole: np.ndarray[tuple[int, int], np.dtype[np.int8]]
    whole = np.rint(exact * (127.0 / np.maximum(greatest, 1e-9))).astype(np.int8)
    return whole
