"""Questions as vectors of small integers, and how near two of them are.

vectors: after reading, before cache. An embedder's vector of 256 numbers takes 256 bytes; its
length is not kept, for only the angle counts. What is embedded is the reading of a question: its
version is part of the embedder's name, so that vectors of two readings are never compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from holdfast.answers.reading import Reading
from holdfast.models.protocol import Embedder

_READING = 1
"""Counted up whenever reading.py or lexicon.py read a question otherwise."""
_MOST = 127


def name_of(embedder: Embedder) -> str:
    """Under which name vectors are kept."""
    return f"{embedder.name}/reading {_READING}"


def vector_of(reading: Reading, embedder: Embedder) -> bytes:
    """The vector of a question; empty if no word of it is known."""
    [vector] = embedder.embed([reading.text])
    return quantized(vector)


def quantized(vector: Sequence[float]) -> bytes:
    """Numbers as bytes, the largest as ±127: a cosine changes by 0.001 at most."""
    largest = max(map(abs, vector), default=0.0)
    if not largest:
        return b""
    return bytes(round(number / largest * _MOST) & 0xFF for number in vector)


def cosine(one: bytes, other: bytes) -> float:
    """How near two vectors are; 0 if they cannot be compared."""
    if len(one) != len(other) or not one:
        return 0.0
    left, right = memoryview(one).cast("b"), memoryview(other).cast("b")
    lengths = sum(map(mul, left, left)) * sum(map(mul, right, right))
    return float(sum(map(mul, left, right)) / math.sqrt(lengths))
