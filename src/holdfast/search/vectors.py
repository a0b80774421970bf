"""Embeddings as signed bytes, their cosines, and sketches of their signs.

One byte per number takes a quarter of the memory and changes a cosine by at most 0.001.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.search.arrays import Bytes, Floats, GrowingArray

_BLOCK = 4_096
"""Number of vectors converted to floats at once, so that they fit the processor's cache."""
_SIGNS = 64


def quantise(vectors: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    """Return vectors as whole numbers up to 127, each scaled by its own largest number."""
    exact = np.asarray(vectors, dtype=np.float32)
    if exact.size == 0:
        return np.zeros((0, 0), dtype=np.int8)
    largest = np.abs(exact).max(axis=1, keepdims=True)
    rows: np.ndarray[tuple[int, int], np.dtype[np.int8]]
    rows = np.rint(exact * (127.0 / np.maximum(largest, 1e-9))).astype(np.int8)
    return rows


def unit_rows(rows: Bytes) -> Floats:
    """Return stored vectors as floats of length 1; rows of zeros stay."""
    vectors = rows.astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors


def products(rows: Bytes, vector: Floats) -> Floats:
    """Return the product of each stored vector with another; exact if that has whole numbers."""
    results = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _BLOCK):
        # Not with `@`: BLAS shares the work among threads and waits for the busiest of them.
        block = rows[start : start + _BLOCK].astype(np.float32)
        np.einsum("ij,j->i", block, vector, out=results[start : start + _BLOCK])
    return results


def lengths_of(rows: Bytes) -> Floats:
    """Return the length of each stored vector."""
    squares = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        squares[start : start + _BLOCK] = np.square(part, dtype=np.float32).sum(axis=1)
    return np.sqrt(squares)


class VectorColumn:
    """Stored vectors that can be appended to, with their lengths."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._rows = GrowingArray(np.int8, dimensions)
        self._lengths = GrowingArray(np.float32)

    def extend(self, rows: Bytes) -> None:
        """Append vectors; zeros stand for a text without one."""
        self._rows.extend(rows)
        self._lengths.extend(lengths_of(rows))

    @property
    def is_known(self) -> Any:
        """Whether each text has a vector."""
        return self._lengths.all > 0

    def cosines(self, vector: Floats, rows: Any = None) -> Floats:
        """Return the cosine of each row, or of the given ones, with a vector of length 1.

        Rows without a vector have 0.
        """
        chosen = slice(None) if rows is None else rows
        lengths = np.maximum(self._lengths.all[chosen], np.float32(1e-6))
        cosines: Floats = products(self._rows.all[chosen], vector) / lengths
        return cosines

    @property
    def nbytes(self) -> int:
        """The memory in use."""
        return self._rows.nbytes + self._lengths.nbytes


class SignSketches:
    """The signs of vectors, 64 per integer.

    The number of differing signs estimates the angle well enough to select some hundreds of 100,000
    vectors, which are then compared exactly.
    """

    def __init__(self, dimensions: int) -> None:
        self._columns = [GrowingArray(np.uint64) for _ in range(-(-dimensions // _SIGNS))]
        angles = np.pi * np.arange(dimensions + 1, dtype=np.float32) / max(dimensions, 1)
        self._cosines: Floats = np.cos(angles)

    def extend(self, rows: Bytes) -> None:
        """Append the sketches of vectors."""
        for column, signs in zip(self._columns, _signs(rows).T, strict=True):
            column.extend(signs)

    def cosines(self, row: Bytes) -> Floats:
        """Return the likely cosine of each vector with another."""
        different = np.zeros(len(self._columns[0]), np.uint16)
        for column, signs in zip(self._columns, _signs(row[np.newaxis])[0], strict=True):
            different += np.bitwise_count(column.all ^ signs)
        return self._cosines[different]


def _signs(rows: Bytes) -> Any:
    """Return the signs of vectors as rows of 64-bit numbers."""
    signs = np.packbits(rows > 0, axis=1)
    padding = -signs.shape[1] % (_SIGNS // 8)
    return np.pad(signs, ((0, 0), (0, padding))).view(np.uint64)
