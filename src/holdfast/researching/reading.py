"""What a search needs of a source's text: passages, their words and vectors, and its sketch.

reading: after passages and similar, before index. A text is read once: the reading is kept in the
store under the hash of the text and of who made it, and goes with the text. A source that was read
before, by whichever run and under whichever name, costs a look-up.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from holdfast.models.protocol import Embedder
from holdfast.researching.passages import cut_up
from holdfast.researching.similar import Sketch, sketch
from holdfast.search.arrays import Ints
from holdfast.search.postings import encode_counts
from holdfast.search.vectors import quantise
from holdfast.search.words import terms_of, words_of
from holdfast.store import Scope, Store

_VERSION = 1
"""Another number makes all readings anew: whoever changes how texts are cut counts it up."""
_MOST_TEXT = 2_000
"""Characters of a passage that are embedded."""
_TOGETHER = 8
"""Passages that are embedded at once: an embedder holds 200 KB for each while it does."""


class SourceReading(msgspec.Struct, frozen=True, array_like=True):
    """The passages of one text as arrays, which a store keeps as bytes."""

    span_bytes: bytes
    """First character and the one behind the last of each passage, in 4 bytes each."""
    size_bytes: bytes
    """How many words each passage has that differ, in 4 bytes."""
    term_bytes: bytes
    """Numbers of these words in 4 bytes, those of one passage behind those of another."""
    count_bytes: bytes
    """How often each of them stands there."""
    vector_bytes: bytes
    """A vector of each passage, a byte for each number; none without an embedder."""
    sketch_bytes: bytes

    @property
    def spans(self) -> Ints:
        """First and last character of each passage, in rows."""
        return np.frombuffer(self.span_bytes, np.int32).reshape(-1, 2)

    @property
    def sizes(self) -> Ints:
        """How many words of each passage differ."""
        return np.frombuffer(self.size_bytes, np.int32)

    @property
    def terms(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Words as numbers, passage behind passage."""
        return np.frombuffer(self.term_bytes, np.uint32)

    @property
    def counts(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """How often each word stands in its passage."""
        return np.frombuffer(self.count_bytes, np.uint8)

    @property
    def vectors(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        """The vectors of the passages, in rows; of a text without passages, none of any width."""
        rows = len(self.sizes)
        width = len(self.vector_bytes) // rows if rows else 0
        return np.frombuffer(self.vector_bytes, np.int8).reshape(rows, width)

    @property
    def sketch(self) -> Sketch:
        """By what near-duplicates are told."""
        return np.frombuffer(self.sketch_bytes, np.uint64)

    def __repr__(self) -> str:
        return f"<SourceReading of {len(self.sizes)} passages>"


def read_text(text: str, embedder: Embedder | None = None) -> SourceReading:
    """Read a text; linear in its length."""
    spans = [(start, stop) for _, start, stop in cut_up(text, 0)]
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


class Readings:
    """The readings of one run's sources: from the store where they are kept, else made."""

    def __init__(self, store: Store, scope: Scope, embedder: Embedder | None) -> None:
        self._store, self._scope = store, scope
        self.embedder = embedder
        self._maker = embedder.name if embedder else "words"
        self._readings: dict[str, SourceReading] = {}
        # One text is read at a time: beside each other they would take the same processor and
        # several times the memory.
        self._lane = asyncio.Lock()

    async def of(self, sha256: str, text: str) -> SourceReading:
        """The reading of a stored text, by its hash."""
        reading = self._readings.get(sha256) or await self._stored(sha256)
        if reading is None:
            async with self._lane:
                reading = await asyncio.to_thread(read_text, text, self.embedder)
            value = msgspec.msgpack.encode(reading)
            await self._store.put_summary(self._scope, self._key(sha256), value, source=sha256)
        self._readings[sha256] = reading
        return reading

    def _key(self, sha256: str) -> str:
        return f"reading:{_VERSION}:{self._maker}:{sha256}"

    async def _stored(self, sha256: str) -> SourceReading | None:
        value = await self._store.summary(self._scope, self._key(sha256))
        return None if value is None else msgspec.msgpack.decode(value, type=SourceReading)
