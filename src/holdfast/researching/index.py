"""An index of the passages of all sources, by words and by vectors if there is an embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import re2  # type: ignore[import-untyped]

from holdfast.models.protocol import Embedder
from holdfast.researching.passages import SourcePassage
from holdfast.researching.source_readings import SourceReading
from holdfast.search.arrays import Floats, Ints
from holdfast.search.postings import MAX_COUNT, Counts, TermIndex, merge_counts
from holdfast.search.vectors import VectorColumn
from holdfast.search.words import is_stop_word, terms_of, words_of

_CAPITALISED = r"\p{Lu}[\p{L}\p{M}\d'’.&-]*"  # noqa: RUF001 - as people write it
# Consecutive capitalised words, as in names, with the small words between them.
_NAME = re2.compile(
    rf"{_CAPITALISED}(?:[ \t]+(?:(?:of|the|de|la|von|van|and|for|in)[ \t]+)?{_CAPITALISED})*"
)


class PassageIndex:
    """Words and vectors of the passages of all sources; `titles` are the names of the sources."""

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
        """The source of each passage."""
        self.passages_of = lengths
        """Number of passages per source."""
        self.words, self.of_sources = self._word_indexes(readings)
        self.of_titles = TermIndex.of([terms_of(words_of(title)) for title in titles])
        self._vectors = VectorColumn(0 if embedder is None else embedder.dimensions)
        for reading in readings:
            if embedder is not None and len(reading.sizes):
                self._vectors.extend(reading.vectors)

    def _word_indexes(self, readings: Sequence[SourceReading]) -> tuple[TermIndex, TermIndex]:
        """Index the words by passage and by source."""
        if not readings:
            return TermIndex.of([]), TermIndex.of([])
        terms = np.concatenate([reading.terms for reading in readings])
        counts = np.concatenate([reading.counts for reading in readings])
        sizes = np.concatenate([reading.sizes for reading in readings])
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        of_sources = merge_counts(Counts(terms, self.source[owners], counts))
        lengths = np.bincount(of_sources.texts, of_sources.counts, len(readings))
        # A word counts at most as often as in one passage, even if its source repeats it more.
        limited = of_sources._replace(counts=np.minimum(of_sources.counts, MAX_COUNT))
        return (
            TermIndex(Counts(terms, owners, counts), len(sizes)),
            TermIndex(limited, len(readings), lengths),
        )

    def __len__(self) -> int:
        return len(self._spans)

    def passage(self, number: int) -> SourcePassage:
        """Return the position of a passage."""
        start, stop = self._spans[number]
        return SourcePassage(int(self.source[number]), int(start), int(stop))

    def text(self, number: int) -> str:
        """Return the text of a passage."""
        source, start, stop = self.passage(number)
        return self.texts[source][start:stop]

    def meaning(self, question: str) -> Floats | None:
        """Return the cosine of each passage with a question; None without an embedder."""
        if self._embedder is None or not len(self):
            return None
        vector = np.asarray(self._embedder.embed([question])[0], np.float32)
        return self._vectors.cosines(vector)


def find_names(text: str) -> list[str]:
    """Return names in a text, such as `Rauni Mollberg`; includes capitalised first words."""
    names = (name.strip(" .'’&-") for name in _NAME.findall(text))  # noqa: RUF001
    return [name for name in names if len(name) > 2 and not is_stop_word(name.lower())]
