"""Postings lists of terms, and BM25 over them.

Terms and texts are numbers. `Postings` supports appending and is read one term at a time; a
`TermIndex` is built once with all scores precomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from holdfast.search.arrays import Floats, GrowingArray, Ints
from holdfast.search.bm25 import USUAL, odds

MAX_COUNT = 255
"""Maximum count of a term in one text; counts are stored in a byte."""
_MIN_RECENT = 20_000
"""Unsorted postings that are searched in a tenth of a millisecond."""


class Counts(NamedTuple):
    """Term counts of several texts as columns."""

    terms: Any
    texts: Any
    counts: Any


def encode_counts(counts: Mapping[int, int]) -> tuple[bytes, bytes]:
    """Return the terms of a text in 4 bytes each, and their counts in a byte each."""
    terms = np.fromiter(counts, dtype=np.uint32, count=len(counts)).tobytes()
    return terms, bytes(min(number, MAX_COUNT) for number in counts.values())


def decode_counts(texts: Sequence[tuple[bytes, bytes]], first: int = 0) -> Counts:
    """Return encoded counts as columns; texts are numbered from `first` on."""
    sizes = [len(counts) for _, counts in texts]
    return Counts(
        np.frombuffer(b"".join(terms for terms, _ in texts), np.uint32),
        np.repeat(np.arange(first, first + len(texts), dtype=np.int32), sizes),
        np.frombuffer(b"".join(counts for _, counts in texts), np.uint8),
    )


def merge_counts(counts: Counts) -> Counts:
    """Return columns in which each term of a text appears once, with the sum of its counts."""
    keys = counts.texts.astype(np.uint64) << np.uint64(32) | counts.terms.astype(np.uint64)
    order = np.argsort(keys)
    keys = keys[order]
    firsts = np.flatnonzero(_is_first(keys))
    numbers = counts.counts[order].astype(np.int64)
    sums = np.add.reduceat(numbers, firsts) if len(firsts) else numbers
    keys = keys[firsts]
    terms = (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return Counts(terms, (keys >> np.uint64(32)).astype(np.int32), sums)


def _is_first(ordered: Any) -> Any:
    """Return for each value of a sorted array whether it differs from the one before."""
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return is_first


class _SortedPostings:
    """Sorted terms, each with the texts that contain it."""

    def __init__(self, terms: Any, texts: Any, counts: Any) -> None:
        order = np.argsort(terms, kind="stable")
        ordered = terms[order]
        firsts = np.flatnonzero(_is_first(ordered))
        self.terms = ordered[firsts]
        self.starts = np.append(firsts, len(ordered))
        self.texts = texts[order]
        self.counts = counts[order]

    def span_of(self, term: int) -> slice:
        """Return the place of a term's texts."""
        at = int(np.searchsorted(self.terms, np.uint32(term)))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    @property
    def repeated_terms(self) -> Any:
        """The term of each posting."""
        return np.repeat(self.terms, np.diff(self.starts))

    @property
    def nbytes(self) -> int:
        """The memory in use."""
        arrays = (self.terms, self.starts, self.texts, self.counts)
        return sum(int(array.nbytes) for array in arrays)


class Postings:
    """Postings of terms, to which texts can be appended.

    They are sorted by term, so that a query reads only its own terms. Recent ones stay unsorted
    until sorting pays.
    """

    def __init__(self) -> None:
        columns = (np.empty(0, np.uint32), np.empty(0, np.int32), np.empty(0, np.uint8))
        self._sorted = _SortedPostings(*columns)
        self._recent = _recent()

    def extend(self, counts: Counts) -> None:
        """Append the terms of new texts, which are numbered higher than all before."""
        for column, values in zip(self._recent, counts, strict=True):
            column.extend(values)
        if len(self._recent.terms) > max(_MIN_RECENT, len(self._sorted.texts) // 4):
            self.sort()

    def sort(self) -> None:
        """Sort recent postings too, as is worth it after many were appended."""
        before, recent = self._sorted, self._recent
        self._sorted = _SortedPostings(
            np.concatenate((before.repeated_terms, recent.terms.all)),
            np.concatenate((before.texts, recent.texts.all)),
            np.concatenate((before.counts, recent.counts.all)),
        )
        self._recent = _recent()

    def of(self, term: int) -> tuple[Ints, Floats]:
        """Return the texts that hold a term in rising order, and how often each does."""
        span = self._sorted.span_of(term)
        recent = np.flatnonzero(self._recent.terms.all == np.uint32(term))
        texts = np.concatenate((self._sorted.texts[span], self._recent.texts.all[recent]))
        counts = np.concatenate((self._sorted.counts[span], self._recent.counts.all[recent]))
        return texts, counts.astype(np.float32)

    @property
    def nbytes(self) -> int:
        """The memory in use."""
        return self._sorted.nbytes + sum(int(column.nbytes) for column in self._recent)


def _recent() -> Counts:
    return Counts(GrowingArray(np.uint32), GrowingArray(np.int32), GrowingArray(np.uint8))


class LookUp(NamedTuple):
    """Terms of several queries, looked up in an index."""

    places: Any
    """The place of each in the index."""
    rows: Any
    """The query of each, in rising order."""
    number: int
    """Number of queries."""
    terms: Any
    """Which of the queries' terms each is, counted over all queries."""


class TermIndex:
    """BM25 over texts that do not change; several queries are scored at once."""

    def __init__(self, counts: Counts, size: int, lengths: Any = None) -> None:
        """Index `size` texts; `lengths` are given where counts were limited."""
        self.size = size
        self._sorted = _SortedPostings(counts.terms, counts.texts.astype(np.int32), counts.counts)
        texts = self._sorted.texts
        holders = np.diff(self._sorted.starts)
        self.rarity: Floats = np.log1p(odds(holders.astype(np.float32), size)).astype(np.float32)
        if lengths is None:
            lengths = np.bincount(counts.texts, weights=counts.counts, minlength=size)
        norms = USUAL.norms(lengths, max(float(lengths.mean()) if size else 0.0, 1e-6))
        self._rarities: Floats = np.repeat(self.rarity, holders)
        times = self._sorted.counts.astype(np.float32)
        gains = USUAL.gains(self._rarities, times, norms[texts].astype(np.float32))
        self._gains: Floats = gains.astype(np.float32)
        self.mass: Floats = np.bincount(texts, weights=self._rarities, minlength=size).astype(
            np.float32
        )
        """The rarity of all terms of a text."""

    @classmethod
    def of(cls, texts: Sequence[Iterable[int]]) -> TermIndex:
        """Index texts by their terms."""
        counters = [Counter(terms) for terms in texts]
        lengths = np.fromiter((each.total() for each in counters), np.float64, len(counters))
        return cls(decode_counts([encode_counts(each) for each in counters]), len(texts), lengths)

    def look_up(self, queries: Sequence[Iterable[int]]) -> LookUp:
        """Look up the terms of queries, each once a query, without those that no text holds."""
        distinct = [dict.fromkeys(terms) for terms in queries]
        query_terms = np.fromiter(chain.from_iterable(distinct), np.uint32)
        rows = np.repeat(np.arange(len(queries)), [len(terms) for terms in distinct])
        terms = self._sorted.terms
        if not len(terms):
            nothing = np.empty(0, np.int64)
            return LookUp(nothing, nothing, len(queries), nothing)
        places = np.minimum(np.searchsorted(terms, query_terms), len(terms) - 1)
        present = np.flatnonzero(terms[places] == query_terms)
        return LookUp(places[present], rows[present], len(queries), present)

    def rarest(self, query: LookUp, most: int) -> LookUp:
        """Return of each query the rarest terms, with at most `most` postings in all."""
        order = np.lexsort((-self.rarity[query.places], query.rows))
        places, rows = query.places[order], query.rows[order]
        sizes = self._sorted.starts[places + 1] - self._sorted.starts[places]
        total = np.cumsum(sizes)
        firsts = np.searchsorted(rows, np.arange(query.number))  # where each query begins
        before = np.append(0, total)[firsts]
        is_within = total - before[rows] <= most
        return LookUp(
            places[is_within], rows[is_within], query.number, query.terms[order][is_within]
        )

    def mass_of(self, query: LookUp) -> Floats:
        """Return the rarity of all terms of each query."""
        sums = np.bincount(query.rows, self.rarity[query.places], query.number)
        return sums.astype(np.float32)

    def gains(self, query: LookUp) -> Floats:
        """Return the BM25 score of each text for each query."""
        return self._summed(query, self._gains)

    def scores(self, weights: Mapping[int, float]) -> Floats:
        """Return the BM25 score of each text for one query whose terms have weights."""
        query = self.look_up([weights])
        of_terms = np.fromiter(weights.values(), np.float32, len(weights))[query.terms]
        scores: Floats = self._summed(query, self._gains, of_terms)[0]
        return scores

    def shared(self, query: LookUp) -> Floats:
        """Return the rarity of each query's terms that each text holds, summed."""
        return self._summed(query, self._rarities)

    def _summed(self, query: LookUp, values: Floats, weights: Floats | None = None) -> Floats:
        """Sum values for all queries at once: NumPy takes longer for a call than for one query."""
        starts = self._sorted.starts[query.places]
        sizes = self._sorted.starts[query.places + 1] - starts
        before = np.cumsum(sizes) - sizes
        at = np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
        cells = self._sorted.texts[at] + np.repeat(query.rows * self.size, sizes)
        chosen = values[at] if weights is None else values[at] * np.repeat(weights, sizes)
        sums = np.bincount(cells, chosen, query.number * self.size)
        return sums.astype(np.float32).reshape(query.number, self.size)
