"""All passages of all sources, to be searched by words and, where there is an embedder, by meaning.

index: after reading. Numbers alone, put together from the readings of the sources: which passages
hold a word, how often, and their vectors. A question then reads only its own words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import re2  # type: ignore[import-untyped]

from holdfast.models.protocol import Embedder
from holdfast.researching.passages import Passage
from holdfast.researching.reading import SourceReading
from holdfast.search.arrays import Floats, Ints
from holdfast.search.postings import MAX_COUNT, Counts, TermIndex, merge_counts
from holdfast.search.vectors import VectorColumn
from holdfast.search.words import is_stop_word, terms_of, words_of

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
        self.of_titles = TermIndex.of([terms_of(words_of(title)) for title in titles])
        self._vectors = VectorColumn(0 if embedder is None else embedder.dimensions)
        for reading in readings:
            if embedder is not None and len(reading.sizes):
                self._vectors.extend(reading.vectors)

    def _word_indexes(self, readings: Sequence[SourceReading]) -> tuple[TermIndex, TermIndex]:
        """Index the words by passage, and by source."""
        if not readings:
            return TermIndex.of([]), TermIndex.of([])
        terms = np.concatenate([reading.terms for reading in readings])
        counts = np.concatenate([reading.counts for reading in readings])
        sizes = np.concatenate([reading.sizes for reading in readings])
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        of_sources = merge_counts(Counts(terms, self.source[owners], counts))
        lengths = np.bincount(of_sources.texts, of_sources.counts, len(readings))
        # A word counts as often as in one passage at most, also where a source repeats it more.
        limited = of_sources._replace(counts=np.minimum(of_sources.counts, MAX_COUNT))
        return (
            TermIndex(Counts(terms, owners, counts), len(sizes)),
            TermIndex(limited, len(readings), lengths),
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
        return self._vectors.cosines(vector)


def names_in(text: str) -> list[str]:
    """Names as they stand: `Rauni Mollberg`, `Bank of England`; first words of sentences too."""
    names = (name.strip(" .'’&-") for name in _NAME.findall(text))  # noqa: RUF001
    return [name for name in names if len(name) > 2 and not is_stop_word(name.lower())]
