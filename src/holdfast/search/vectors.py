"""Vectors as they are kept: a signed byte for each number.

vectors: after protocol. What memory, toolbox and research keep of an embedder's vectors; a cosine
changes by 0.001 at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_BLOCK = 4_096
"""Vectors that are turned into floats at once: they stay in the cache of the processor."""

Floats = np.ndarray[Any, np.dtype[np.float32]]
Bytes = np.ndarray[Any, np.dtype[np.int8]]


def quantised(vectors: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    """Vectors of length 1 as whole numbers to 127, each by its own greatest."""
    exact = np.asarray(vectors, dtype=np.float32)
    if exact.size == 0:
        return np.zeros((0, 0), dtype=np.int8)
    greatest = np.abs(exact).max(axis=1, keepdims=True)
    whole: np.ndarray[tuple[int, int], np.dtype[np.int8]]
    whole = np.rint(exact * (127.0 / np.maximum(greatest, 1e-9))).astype(np.int8)
    return whole


def products(held: Bytes, vector: Floats) -> Floats:
    """The product of each vector that is kept with another."""
    results = np.empty(len(held), np.float32)
    for start in range(0, len(held), _BLOCK):
        # Not with `@`: what BLAS would share out among threads waits for the busiest of them.
        block = held[start : start + _BLOCK].astype(np.float32)
        np.einsum("ij,j->i", block, vector, out=results[start : start + _BLOCK])
    return results


def lengths_of(held: Bytes) -> Floats:
    """The length of each vector that is kept."""
    squares = np.empty(len(held), np.float32)
    for start in range(0, len(held), _BLOCK):
        part = held[start : start + _BLOCK]
        squares[start : start + _BLOCK] = np.square(part, dtype=np.float32).sum(axis=1)
    return np.sqrt(squares)
