"""The index of one source's text: passages, their words and vectors, and a similarity sketch.

A text is indexed once. The index is stored under the hash of the text and the name of the indexer,
and deleted with the text.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from holdfast.models.protocol import Embedder
from holdfast.researching.passages import split_passages
from holdfast.researching.similar import Sketch, sketch
from holdfast.search.arrays import Ints
from holdfast.search.postings import encode_counts
from holdfast.search.vectors import quantise
from holdfast.search.words import terms_of, words_of
from holdfast.store import Scope, Store

_VERSION = 1
"""Version of the index; increase it if texts are split differently."""
_MOST_TEXT = 2_000
"""Characters of a passage that are embedded."""
_TOGETHER = 8
"""Passages embedded per call: an embedder needs 200 KB of memory for each."""


class SourceReading(msgspec.Struct, frozen=True, array_like=True):
    """The passages of one text as arrays in bytes, for storage."""

    span_bytes: bytes
    """Start and end offset of each passage, 4 bytes each."""
    size_bytes: bytes
    """Number of distinct words per passage, 4 bytes each."""
    term_bytes: bytes
    """Ids of these words, 4 bytes each, passage after passage."""
    count_bytes: bytes
    """How often each word occurs in its passage."""
    vector_bytes: bytes
    """One vector per passage, 1 byte per dimension; empty without an embedder."""
    sketch_bytes: bytes

    @property
    def spans(self) -> Ints:
        """Return start and end offset of each passage, in rows."""
        return np.frombuffer(self.span_bytes, np.int32).reshape(-1, 2)

    @property
    def sizes(self) -> Ints:
        """Return the number of distinct words per passage."""
        return np.frombuffer(self.size_bytes, np.int32)

    @property
    def terms(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Return word ids, passage after passage."""
        return np.frombuffer(self.term_bytes, np.uint32)

    @property
    def counts(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return how often each word occurs in its passage."""
        return np.frombuffer(self.count_bytes, np.uint8)

    @property
    def vectors(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Return the vectors of the passages in rows; an empty array without passages."""
        rows = len(self.sizes)
        width = len(self.vector_bytes) // rows if rows else 0
        return np.frombuffer(self.vector_bytes, np.int8).reshape(rows, width)

    @property
    def sketch(self) -> Sketch:
        """Return the sketch by which near-duplicates are recognised."""
        return np.frombuffer(self.sketch_bytes, np.uint64)

    def __repr__(self) -> str:
        return f"<SourceReading of {len(self.sizes)} passages>"


def index_text(text: str, embedder: Embedder | None = None) -> SourceReading:
    """Index a text in linear time."""
    spans = [(start, stop) for _, start, stop in split_passages(text, 0)]
    passages = [text[start:stop] for start, stop in spans]
    counts = [encode_counts(Counter(terms_of(words_of(passage)))) for passage in passages]
    return SourceReading(
        np.array(spans, np.int32).tobytes(),
        np.fromiter((len(each) for _, each in counts), np.int32, len(counts)).tobytes(),
        b"".join(terms for terms, _ in counts),
        b"".join(each for _, each in counts),
        _vectors(passages, embedder),
        sketch(text).tobytes(),
    )


def _vectors(passages: Sequence[str], embedder: Embedder | None) -> bytes:
    if embedder is None:
        return b""
    texts = [passage[:_MOST_TEXT] for passage in passages]
    batches = (texts[at : at + _TOGETHER] for at in range(0, len(texts), _TOGETHER))
    return b"".join(quantise(embedder.embed(batch)).tobytes() for batch in batches)


class SourceReadings:
    """The indexes of one run's sources, from the store or newly made."""

    def __init__(self, store: Store, scope: Scope, embedder: Embedder | None) -> None:
        self._store, self._scope = store, scope
        self.embedder = embedder
        self._indexer = embedder.name if embedder else "words"
        self._readings: dict[str, SourceReading] = {}
        # One text at a time: concurrent indexing shares the processor and takes several times the
        # memory.
        self._lane = asyncio.Lock()

    async def of(self, sha256: str, text: str) -> SourceReading:
        """Return the index of a stored text by its hash."""
        reading = self._readings.get(sha256) or await self._load(sha256)
        if reading is None:
            async with self._lane:
                reading = await asyncio.to_thread(index_text, text, self.embedder)
            value = msgspec.msgpack.encode(reading)
            await self._store.put_summary(self._scope, self._key(sha256), value, source=sha256)
        self._readings[sha256] = reading
        return reading

    def _key(self, sha256: str) -> str:
        return f"reading:{_VERSION}:{self._indexer}:{sha256}"

    async def _load(self, sha256: str) -> SourceReading | None:
        value = await self._store.summary(self._scope, self._key(sha256))
        return None if value is None else msgspec.msgpack.decode(value, type=SourceReading)
