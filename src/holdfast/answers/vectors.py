"""Questions as vectors of small integers, and how near two of them are.

vectors: after reading, before cache. An embedder's 256 numbers take 260 bytes: one each, and the
length of all. What is embedded is the reading of a question: its version is part of the embedder's
name, so that vectors of two readings are never compared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from operator import mul

from holdfast.answers.reading import Reading
from holdfast.models.protocol import Embedder

_READING = 1
"""Counted up whenever reading.py or lexicon.py read a question otherwise."""
_MOST = 127
_LENGTH = struct.Struct("<f")


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
    whole = [round(number / largest * _MOST) for number in vector]
    length = math.sqrt(sum(map(mul, whole, whole)))
    return bytes(number & 0xFF for number in whole) + _LENGTH.pack(length)


def cosines(vector: bytes, others: Iterable[bytes]) -> list[float]:
    """How near a vector is to others; 0 to those that it cannot be compared with.

    In plain Python, 1,000 of them in 15 ms: no library for numbers is needed, and whoever has more
    questions in one context than that compares the newest.
    """
    if not vector:
        return [0.0 for _ in others]
    numbers, length = _opened(vector)
    similarities = []
    for other in others:
        if len(other) != len(vector):
            similarities.append(0.0)
            continue
        theirs, their_length = _opened(other)
        similarities.append(sum(map(mul, numbers, theirs)) / (length * their_length))
    return similarities


def _opened(vector: bytes) -> tuple[list[int], float]:
    size = len(vector) - _LENGTH.size
    return memoryview(vector)[:size].cast("b").tolist(), _LENGTH.unpack_from(vector, size)[0]
