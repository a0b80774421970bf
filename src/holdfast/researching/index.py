"""All passages of all sources, to be searched by words and, where there is an embedder, by meaning.

index: after passages. Numbers alone: which passages hold a word, how often, and which names they
hold. Built once, linear in the text; a question then reads only its own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import re2  # type: ignore[import-untyped]

from holdfast.condense.question import is_stop_word
from holdfast.condense.words import terms_of, words_of
from holdfast.memory.arrays import Floats, Ints, Postings
from holdfast.models.protocol import Embedder
from holdfast.researching.passages import Passage

_K1, _B = 1.2, 0.75
"""BM25's own, as everyone has them."""
_MOST_TEXT = 2_000
"""Characters of a passage that are embedded."""
_CAPITALISED = r"\p{Lu}[\p{L}\p{M}\d'’.&-]*"  # noqa: RUF001 - as people write it
# Words with a capital that follow each other, as names do, with what joins them.
_NAME = re2.compile(
    rf"{_CAPITALISED}(?:[ \t]+(?:(?:of|the|de|la|von|van|and|for|in)[ \t]+)?{_CAPITALISED})*"
)


class PassageIndex:
    """Words and names of passages; `titles` are what each source is called."""

    def __init__(
        self,
        texts: Sequence[str],
        titles: Sequence[str],
        passages: Sequence[Passage],
        embedder: Embedder | None = None,
    ) -> None:
        self.texts = texts
        self.titles = titles
        self.passages = passages
        self.source: Ints = np.fromiter((p.source for p in passages), np.int32, len(passages))
        self.words = _Words([self.text(n) for n in range(len(passages))])
        self.of_titles = _Words(list(titles))
        self.of_sources = self._by_source()
        self._embedder = embedder
        self._vectors: np.ndarray[Any, Any] | None = None

    def text(self, number: int) -> str:
        """What a passage says."""
        source, start, stop = self.passages[number]
        return self.texts[source][start:stop]

    def _by_source(self) -> _Words:
        counts: list[Counter[int]] = [Counter() for _ in self.titles]
        for passage, terms in zip(self.passages, self.words.terms, strict=True):
            counts[passage.source].update(terms)
        return _Words.counted(counts)

    def meaning(self, question: str) -> Floats | None:
        """How near each passage is to a question; None without an embedder."""
        if self._embedder is None or not self.passages:
            return None
        if self._vectors is None:
            texts = [self.text(n)[:_MOST_TEXT] for n in range(len(self.passages))]
            self._vectors = np.asarray(self._embedder.embed(texts), np.float32)
        asked = np.asarray(self._embedder.embed([question])[0], np.float32)
        near: Floats = self._vectors @ asked
        return near


class _Words:
    """Which texts hold a word, and BM25 over them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._fill([Counter(terms_of(words_of(text))) for text in texts])

    @classmethod
    def counted(cls, counts: Sequence[Counter[int]]) -> _Words:
        """The same of words that were counted already."""
        words = cls.__new__(cls)
        words._fill(counts)
        return words

    def _fill(self, counts: Sequence[Counter[int]]) -> None:
        self.terms = counts
        self.size = len(counts)
        self._postings = Postings()
        lengths = np.fromiter((c.total() for c in counts), np.float32, len(counts))
        mean = max(float(lengths.mean()) if len(lengths) else 1.0, 1e-6)
        self._norms: Floats = (_K1 * (1 - _B + _B * lengths / mean)).astype(np.float32)
        for number, count in enumerate(counts):
            if count:
                terms = np.fromiter(count.keys(), np.uint32, len(count))
                often = np.minimum(np.fromiter(count.values(), np.int64, len(count)), 255)
                self._postings.extend(terms, np.full(len(count), number, np.int32), often)

    def rarity(self, term: int) -> float:
        """How much a word tells: the fewer texts hold it, the more."""
        holders = len(self._postings.of(term)[0])
        return float(np.log1p((self.size - holders + 0.5) / (holders + 0.5)))

    def holders(self, term: int) -> Ints:
        """The texts that hold a word."""
        return self._postings.of(term)[0]

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


def names_in(text: str) -> list[str]:
    """Names as they stand: `Rauni Mollberg`, `Bank of England`; first words of sentences too."""
    names = (name.strip(" .'’&-") for name in _NAME.findall(text))  # noqa: RUF001
    return [name for name in names if len(name) > 2 and not is_stop_word(name.lower())]
