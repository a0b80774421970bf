"""vectors: texts as signed bytes and as bits, which are quick to compare.

vectors: after words, before index. A vector of length 1 becomes a signed byte for each dimension,
scaled so that the largest is 127; of these bytes the signs alone make a sketch of 32 bytes. How
many signs differ tells the angle well enough to choose some hundreds of 100,000, whose bytes are
then compared exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.models.protocol import Embedder

WORD_BITS = 64
Numbers = npt.NDArray[Any]


def quantized(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """The vectors of texts, a signed byte for each dimension."""
    if not texts:
        return []
    vectors = np.asarray(embedder.embed(texts), dtype=np.float32)
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors * (127.0 / np.where(largest > 0, largest, 1.0))
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


def sketch(vector: bytes) -> list[int]:
    """The signs of a vector, 64 in each number."""
    signs = np.packbits(np.frombuffer(vector, np.int8) > 0)
    padded = np.pad(signs, (0, -len(signs) % (WORD_BITS // 8)))
    numbers: list[int] = padded.view(np.uint64).tolist()
    return numbers


def cosines(vector: bytes, others: Numbers) -> Numbers:
    """How near vectors are to one: 1 in the same direction, 0 at a right angle."""
    one = np.frombuffer(vector, np.int8).astype(np.float32)
    many = others.astype(np.float32)
    lengths = np.linalg.norm(many, axis=1) * np.linalg.norm(one)
    return many @ one / np.where(lengths > 0, lengths, 1.0)


def angle_table(bits: int) -> Numbers:
    """The cosine that so many different signs of so many make likely."""
    return np.cos(np.pi * np.arange(bits + 1, dtype=np.float32) / bits)
