"""The tools of a directory as arrays: all that a search looks at, built once.

index: after reading. Words and runs of letters stand as sorted numbers with the tools that hold
them and what each gains by it (BM25), reckoned when the index is built: a query only adds up. It
sees numbers alone, and knows neither texts nor schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from holdfast.toolbox.reading import FIELDS, Read, decoded

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int32]]

_K1, _B = 1.2, 0.75
"""BM25's own, as everyone has them."""
WEIGHT_OF_FIELD = {"name": 3, "description": 1, "parameters": 1, "server": 1}
"""How often the words of a field count where all fields are read as one text."""


class LookUp(NamedTuple):
    """Terms of several queries, found in an index."""

    places: Any
    """Where each stands there."""
    rows: Any
    """Which query it is of, in rising order."""
    number: int
    """Of queries."""


class Postings:
    """Which texts hold a term, and what a query that has it gains by each (BM25)."""

    def __init__(self, terms: Any, texts: Any, counts: Any, size: int) -> None:
        order = np.argsort(terms, kind="stable")
        self._terms, starts = np.unique(terms[order], return_index=True)
        self._starts = np.append(starts, len(terms)).astype(np.int64)
        self._texts = texts[order].astype(np.int32)
        self.size = size
        holding = np.diff(self._starts).astype(np.float32)
        self.rarity: Floats = np.log1p((size - holding + 0.5) / (holding + 0.5)).astype(np.float32)
        lengths = np.bincount(texts, weights=counts, minlength=size)
        norms = _K1 * (1 - _B + _B * lengths / max(float(lengths.mean()) if size else 0.0, 1e-6))
        of_term = np.repeat(np.arange(len(self._terms)), np.diff(self._starts))
        sorted_counts = counts[order].astype(np.float32)
        self._rarities: Floats = self.rarity[of_term]
        self._gains: Floats = (
            self._rarities
            * sorted_counts
            * (_K1 + 1)
            / (sorted_counts + norms[self._texts].astype(np.float32))
        ).astype(np.float32)
        self.mass: Floats = np.bincount(self._texts, weights=self._rarities, minlength=size).astype(
            np.float32
        )
        """The rarity of all terms of a text."""

    def look_up(self, rows: Sequence[Iterable[int]]) -> LookUp:
        """Where the terms of queries stand, each once a query; those that any text holds."""
        once = [dict.fromkeys(terms) for terms in rows]
        wanted = np.fromiter(chain.from_iterable(once), np.uint32)
        owners = np.repeat(np.arange(len(rows)), [len(terms) for terms in once])
        at = np.minimum(np.searchsorted(self._terms, wanted), max(len(self._terms) - 1, 0))
        held = self._terms[at] == wanted if len(self._terms) else np.zeros(len(wanted), bool)
        return LookUp(at[held], owners[held], len(rows))

    def rarest(self, asked: LookUp, most: int) -> LookUp:
        """Of each query's terms the rarest, which so many texts hold in all."""
        order = np.lexsort((-self.rarity[asked.places], asked.rows))
        places, rows = asked.places[order], asked.rows[order]
        sizes = self._starts[places + 1] - self._starts[places]
        total = np.cumsum(sizes)
        firsts = np.searchsorted(rows, np.arange(asked.number))  # where each query begins
        before = np.append(0, total)[firsts]
        few = total - before[rows] <= most
        return LookUp(places[few], rows[few], asked.number)

    def mass_of(self, asked: LookUp) -> Floats:
        """The rarity of all terms of each query."""
        sums = np.bincount(asked.rows, self.rarity[asked.places], asked.number)
        return sums.astype(np.float32)

    def gains(self, asked: LookUp) -> Floats:
        """What each text gains by the terms of each query."""
        return self._summed(asked, self._gains)

    def shared(self, asked: LookUp) -> Floats:
        """The rarity of each query's terms that each text holds, summed."""
        return self._summed(asked, self._rarities)

    def _summed(self, asked: LookUp, values: Floats) -> Floats:
        """For all queries at once: a call of NumPy takes longer than what it does for one."""
        starts = self._starts[asked.places]
        sizes = self._starts[asked.places + 1] - starts
        before = np.cumsum(sizes) - sizes
        at = np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
        cells = self._texts[at] + np.repeat(asked.rows * self.size, sizes)
        sums = np.bincount(cells, values[at], asked.number * self.size)
        return sums.astype(np.float32).reshape(asked.number, self.size)


class ToolIndex:
    """The tools of a directory, to be searched."""

    def __init__(self, keys: Sequence[tuple[str, str]], reads: Sequence[bytes], width: int) -> None:
        """Build it from what was read in tools that are called so, of servers that are called so.

        `width` is the number of dimensions of their vectors; 0 if they have none.
        """
        parts = [decoded(read) for read in reads]
        self.keys = tuple(keys)
        self.size = len(parts)
        self.servers = {name: n for n, name in enumerate(dict.fromkeys(key[0] for key in keys))}
        self.server: Ints = np.fromiter((self.servers[key[0]] for key in keys), np.int32)
        self.fields = {name: self._field(parts, n) for n, name in enumerate(FIELDS)}
        self.whole = self._whole(parts)
        self.grams = _postings([part.grams for part in parts], None)
        self.vectors = self._stacked(parts, width) if width else None

    def _field(self, parts: Sequence[Read], n: int) -> Postings:
        return _postings([part.fields[n] for part in parts], [part.counts[n] for part in parts])

    def _whole(self, parts: Sequence[Read]) -> Postings:
        """All fields as one text."""
        terms, texts, counts = _concatenated(
            [part.fields[n] for n in range(len(FIELDS)) for part in parts],
            [part.counts[n] for n in range(len(FIELDS)) for part in parts],
        )
        field, texts = np.divmod(texts, max(self.size, 1))
        counts = counts * np.fromiter(WEIGHT_OF_FIELD.values(), np.int64)[field]
        pairs, inverse = np.unique(
            terms.astype(np.int64) * max(self.size, 1) + texts, return_inverse=True
        )
        sums = np.bincount(inverse, counts, len(pairs))
        both = np.divmod(pairs, max(self.size, 1))
        return Postings(both[0].astype(np.uint32), both[1], sums, self.size)

    def _stacked(self, parts: Sequence[Read], width: int) -> Floats:
        """A vector for each tool, of length 1; of one without, zeros."""
        held = b"".join(
            part.vector if len(part.vector) == width else bytes(width) for part in parts
        )
        vectors = np.frombuffer(held, np.int8).reshape(-1, width).astype(np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
        return vectors


def _concatenated(terms: list[bytes], counts: list[bytes] | None) -> tuple[Any, Any, Any]:
    sizes = [len(each) // 4 for each in terms]
    numbers = np.frombuffer(b"".join(terms), np.uint32)
    owners = np.repeat(np.arange(len(terms), dtype=np.int64), sizes)
    times = np.ones(len(numbers)) if counts is None else np.frombuffer(b"".join(counts), np.uint8)
    return numbers, owners, times.astype(np.int64)


def _postings(terms: list[bytes], counts: list[bytes] | None) -> Postings:
    return Postings(*_concatenated(terms, counts), len(terms))
