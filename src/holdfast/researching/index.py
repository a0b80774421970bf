"""All passages of all sources, to be searched by words and, where there is an embedder, by meaning.

index: after reading. Numbers alone, put together from the readings of the sources: which passages
hold a word, how often, and their vectors. A question then reads only its own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import re2  # type: ignore[import-untyped]

from holdfast.memory.arrays import Floats, Ints, Postings
from holdfast.models.protocol import Embedder
from holdfast.researching.passages import Passage
from holdfast.researching.reading import SourceReading
from holdfast.search.vectors import lengths_of, products
from holdfast.search.words import is_stop_word, terms_of, words_of

_K1, _B = 1.2, 0.75
"""BM25's own, as everyone has them."""
_MOST_COUNT = 255
"""Of one word in one text, as a posting holds it."""
_CAPITALISED = r"\p{Lu}[\p{L}\p{M}\d'’.&-]*"  # noqa: RUF001 - as people write it
# Words with a capital that follow each other, as names do, with what joins them.
_NAME = re2.compile(
    rf"{_CAPITALISED}(?:[ \t]+(?:(?:of|the|de|la|von|van|and|for|in)[ \t]+)?{_CAPITALISED})*"
)


class PassageIndex:
    """Words and vectors of the passages of all sources; `titles` are what each is called."""

    def __init__(
        self,
        texts: Sequence[str],
        titles: Sequence[str],
        readings: Sequence[SourceReading],
        embedder: Embedder | None = None,
    ) -> None:
        self.texts = texts
        self.titles = titles
        self._embedder = embedder
        spans = [reading.spans for reading in readings]
        self._spans: Ints = np.concatenate(spans) if spans else np.empty((0, 2), np.int32)
        lengths = [len(each) for each in spans]
        self.source: Ints = np.repeat(np.arange(len(spans), dtype=np.int32), lengths)
        """Which source each passage is of."""
        self.passages_of = lengths
        """How many passages each source has."""
        self.words, self.of_sources = self._word_indexes(readings)
        self.of_titles = WordIndex.of(titles)
        self._vectors = _joined([reading.vectors for reading in readings])
        self._lengths: Floats = np.maximum(lengths_of(self._vectors), np.float32(1e-6))

    def _word_indexes(self, readings: Sequence[SourceReading]) -> tuple[WordIndex, WordIndex]:
        """The words by passage, and by source."""
        if not readings:
            return WordIndex.of([]), WordIndex.of([])
        terms = np.concatenate([reading.terms for reading in readings])
        counts = np.concatenate([reading.counts for reading in readings])
        sizes = np.concatenate([reading.sizes for reading in readings])
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        by_source = _summed(terms, self.source[owners], counts)
        return (
            WordIndex(terms, owners, counts, len(sizes)),
            WordIndex(*by_source, len(readings)),
        )

    def __len__(self) -> int:
        return len(self._spans)

    def passage(self, number: int) -> Passage:
        """Where a passage stands."""
        start, stop = self._spans[number]
        return Passage(int(self.source[number]), int(start), int(stop))

    def text(self, number: int) -> str:
        """What a passage says."""
        source, start, stop = self.passage(number)
        return self.texts[source][start:stop]

    def meaning(self, question: str) -> Floats | None:
        """How near each passage is to a question; None without an embedder."""
        if self._embedder is None or not len(self):
            return None
        vector = np.asarray(self._embedder.embed([question])[0], np.float32)
        return products(self._vectors, vector) / self._lengths


class WordIndex:
    """Which texts hold a word, and BM25 over them."""

    def __init__(self, terms: Any, owners: Ints, counts: Any, size: int) -> None:
        self.size = size
        self._postings = Postings()
        self._postings.extend(terms, owners, np.minimum(counts, _MOST_COUNT))
        lengths = np.bincount(owners, weights=counts, minlength=size).astype(np.float32)
        mean = max(float(lengths.mean()) if size else 1.0, 1e-6)
        self._norms: Floats = (_K1 * (1 - _B + _B * lengths / mean)).astype(np.float32)

    @classmethod
    def of(cls, texts: Sequence[str]) -> WordIndex:
        """The words of texts."""
        counters = [Counter(terms_of(words_of(text))) for text in texts]
        terms = np.array([term for counter in counters for term in counter], np.uint32)
        counts = np.array([n for counter in counters for n in counter.values()], np.int64)
        owners = np.repeat(np.arange(len(texts), dtype=np.int32), [*map(len, counters)])
        return cls(terms, owners, counts, len(texts))

    def scores(self, weights: dict[int, float]) -> Floats:
        """BM25 of every text for words, each with its weight."""
        scores = np.zeros(self.size, np.float32)
        for term, weight in weights.items():
            holders, counts = self._postings.of(term)
            if len(holders):
                rarity = np.log1p((self.size - len(holders) + 0.5) / (len(holders) + 0.5))
                gains = counts * (_K1 + 1) / (counts + self._norms[holders])
                scores[holders] += np.float32(weight * rarity) * gains
        return scores


def _summed(terms: Any, owners: Ints, counts: Any) -> tuple[Any, Ints, Any]:
    """Words of passages as words of their sources: each word once, with all that it is there."""
    keys = owners.astype(np.uint64) << np.uint64(32) | terms.astype(np.uint64)
    order = np.argsort(keys)
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=keys[:1] + np.uint64(1)))
    sums = np.add.reduceat(counts[order].astype(np.int64), firsts) if len(firsts) else counts
    keys = keys[firsts]
    return (
        (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        (keys >> np.uint64(32)).astype(np.int32),
        sums,
    )


def _joined(vectors: Sequence[np.ndarray[Any, np.dtype[np.int8]]]) -> Any:
    """The vectors of all passages; a text without passages has none of any width."""
    rows = [each for each in vectors if each.size]
    return np.concatenate(rows) if rows else np.empty((0, 0), np.int8)


def names_in(text: str) -> list[str]:
    """Names as they stand: `Rauni Mollberg`, `Bank of England`; first words of sentences too."""
    names = (name.strip(" .'’&-") for name in _NAME.findall(text))  # noqa: RUF001
    return [name for name in names if len(name) > 2 and not is_stop_word(name.lower())]
