"""vectors: questions as vectors of bytes, and the cosines between them.

A stored vector is a byte for each number of the embedder and the length of all. The reading of a
question is embedded, not its text: the version of the reading is part of the embedder's name, so
that vectors of two readings are never compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from holdfast.answer_cache.reading import Reading
from holdfast.models.protocol import Embedder
from holdfast.search.vectors import lengths_of, products, quantise

_READING = 1
"""Counted up whenever reading.py or lexicon.py read a question otherwise."""
_LENGTH = struct.Struct("<f")


def name_of(embedder: Embedder) -> str:
    """Return the name under which vectors are stored."""
    return f"{embedder.name}/reading {_READING}"


def vector_of(reading: Reading, embedder: Embedder) -> bytes:
    """Return the vector of a question; empty if the embedder knows none of its words."""
    [vector] = embedder.embed([reading.text])
    return encoded(vector)


def encoded(vector: Sequence[float]) -> bytes:
    """Return a vector as it is stored; empty if it is 0."""
    if not any(vector):
        return b""
    rows = quantise([vector])
    return rows.tobytes() + _LENGTH.pack(float(lengths_of(rows)[0]))


def cosines(vector: bytes, others: Iterable[bytes]) -> list[float]:
    """Return the cosines of a vector with others; 0 for incomparable ones."""
    stored = list(others)
    alike = [n for n, candidate in enumerate(stored) if vector and len(candidate) == len(vector)]
    similarities = [0.0] * len(stored)
    if not alike:
        return similarities
    rows, lengths = _opened([stored[n] for n in alike])
    [numbers], [length] = _opened([vector])
    scores = products(rows, numbers.astype(np.float32)) / (length * lengths)
    for n, score in zip(alike, scores.tolist(), strict=True):
        similarities[n] = score
    return similarities


def _opened(stored: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of stored vectors, and their lengths."""
    size = len(stored[0]) - _LENGTH.size
    table = np.frombuffer(b"".join(stored), np.uint8).reshape(len(stored), -1)
    lengths = np.ascontiguousarray(table[:, size:]).view("<f4")[:, 0]
    return table[:, :size].view(np.int8), lengths.astype(np.float64)
