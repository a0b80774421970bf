"""The turns of a scope as arrays: all that ranking looks at, and nothing of what was said.

arrays: after indexing. Built once from the store and then only added to: a turn that is remembered
costs its own words, not those of the ten thousand before it. Words stand sorted, so that a question
reads only its own; what was added lately stands behind them unsorted until there is enough of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from holdfast.memory import indexing
from holdfast.memory.dates import day_of
from holdfast.search.vectors import lengths_of, products
from holdfast.store.turn_shelf import IndexedTurn

EPISODE_SECONDS = 3 * 3600.0
"""A pause after which a session goes on to something else."""
_LEAST_UNSORTED = 20_000
"""Words behind the sorted ones that are looked through in a tenth of a millisecond."""
_NOBODY = -1

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int32]]


class Growing:
    """An array that is added to; twice as large when it is full."""

    def __init__(self, dtype: Any, width: int = 0) -> None:
        self._held = np.empty((64, width) if width else 64, dtype=dtype)
        self._size = 0

    def extend(self, values: Any) -> None:
        """Add values at the end."""
        size = self._size + len(values)
        if size > len(self._held):
            larger = np.empty(
                (max(size, 2 * len(self._held)), *self._held.shape[1:]), self._held.dtype
            )
            larger[: self._size] = self._held[: self._size]
            self._held = larger
        self._held[self._size : size] = values
        self._size = size

    @property
    def all(self) -> Any:
        """What was added, without a copy."""
        return self._held[: self._size]

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._held.nbytes

    def __len__(self) -> int:
        return self._size


class Postings:
    """Which pieces hold a word, and how often."""

    def __init__(self) -> None:
        self._terms = np.empty(0, np.uint32)
        self._pieces = np.empty(0, np.int32)
        self._counts = np.empty(0, np.uint8)
        self._late = (Growing(np.uint32), Growing(np.int32), Growing(np.uint8))

    def extend(self, terms: Any, pieces: Any, counts: Any) -> None:
        """Add words of new pieces."""
        for late, values in zip(self._late, (terms, pieces, counts), strict=True):
            late.extend(values)
        if len(self._late[0]) > max(_LEAST_UNSORTED, len(self._terms) // 4):
            self._sort()

    def _sort(self) -> None:
        late_terms, late_pieces, late_counts = (late.all for late in self._late)
        terms = np.concatenate((self._terms, late_terms))
        order = np.argsort(terms, kind="stable")
        self._terms = terms[order]
        self._pieces = np.concatenate((self._pieces, late_pieces))[order]
        self._counts = np.concatenate((self._counts, late_counts))[order]
        self._late = (Growing(np.uint32), Growing(np.int32), Growing(np.uint8))

    def of(self, term: int) -> tuple[Ints, Floats]:
        """The pieces that hold a word, each once, and how often each does."""
        first = np.searchsorted(self._terms, np.uint32(term), "left")
        last = np.searchsorted(self._terms, np.uint32(term), "right")
        late = np.flatnonzero(self._late[0].all == np.uint32(term))
        pieces = np.concatenate((self._pieces[first:last], self._late[1].all[late]))
        counts = np.concatenate((self._counts[first:last], self._late[2].all[late]))
        return pieces, counts.astype(np.float32)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        held = self._terms.nbytes + self._pieces.nbytes + self._counts.nbytes
        return held + sum(late.nbytes for late in self._late)


class ScopeArrays:
    """The turns of one user and workspace, in the order of remembering."""

    def __init__(self, maker: str, dimensions: int) -> None:
        self.maker = maker
        self.last_place = 0
        self.names: dict[str, int] = {}
        """Speakers by their names, as numbers."""
        self.sessions: dict[str, int] = {}
        self.postings = Postings()
        self.episodes = 0
        self._last_of: dict[int, tuple[int, float, int]] = {}
        """The last turn of each session, when it was said, and its episode."""
        # Of turns:
        self.place = Growing(np.int64)
        self.session = Growing(np.int32)
        self.episode = Growing(np.int32)
        self.name = Growing(np.int32)
        self.is_user = Growing(np.bool_)
        self.is_assistant = Growing(np.bool_)
        self.at = Growing(np.float64)
        self.day = Growing(np.int32)
        self.number = Growing(np.int64)
        self.asks = Growing(np.bool_)
        self.pieces = Growing(np.int32)
        self.before = Growing(np.int32)
        """The turn before it in its session; -1 if there is none."""
        self.behind = Growing(np.int32)
        # Of pieces:
        self.turn = Growing(np.int32)
        self.start = Growing(np.int32)
        self.end = Growing(np.int32)
        self.tokens = Growing(np.int32)
        self.marks = Growing(np.uint8)
        self.capitals = Growing(np.uint8)
        self.words = Growing(np.int32)
        self.vectors = Growing(np.int8, dimensions) if dimensions else None
        self.lengths = Growing(np.float32)
        """Of the vectors."""
        # Of dates that pieces say:
        self.dates = Growing(np.int32, 3)
        """The piece, the first and the last day."""

    def __len__(self) -> int:
        return len(self.place)

    @property
    def nbytes(self) -> int:
        """The memory that all of it takes, roughly."""
        arrays = (value for value in vars(self).values() if isinstance(value, Growing))
        return sum(array.nbytes for array in arrays) + self.postings.nbytes

    def add(self, turns: Iterable[IndexedTurn]) -> None:
        """Add turns behind the others; of another maker's index only the pieces are taken."""
        rows = [(turn, indexing.decoded(turn.index)) for turn in turns]
        if rows:
            first = len(self)
            self._add_turns(rows)
            self._add_pieces(rows, first)
            self.last_place = rows[-1][0].place

    def _add_turns(self, rows: list[tuple[IndexedTurn, indexing.TurnIndex]]) -> None:
        columns: list[tuple[Any, ...]] = []
        for place, (turn, index) in enumerate(rows, len(self)):
            session = self.sessions.setdefault(turn.session, len(self.sessions))
            before, said, episode = self._last_of.get(session, (_NOBODY, 0.0, 0))
            if before == _NOBODY or turn.at - said > EPISODE_SECONDS:
                episode = self.episodes
                self.episodes += 1
            self._last_of[session] = (place, turn.at, episode)
            name = self.names.setdefault(turn.name or turn.role, len(self.names))
            who = (name, turn.role == "user", turn.role == "assistant")
            when = (turn.at, day_of(turn.at), turn.number)
            columns.append((session, episode, *who, *when, index.asks, len(index.pieces), before))
        first = len(self)
        self.place.extend([turn.place for turn, _ in rows])
        arrays = (
            *(self.session, self.episode, self.name, self.is_user, self.is_assistant),
            *(self.at, self.day, self.number, self.asks, self.pieces, self.before),
        )
        for array, values in zip(arrays, zip(*columns, strict=True), strict=True):
            array.extend(values)
        self.behind.extend(np.full(len(rows), _NOBODY, np.int32))
        before_new = self.before.all[first:]
        follows = np.flatnonzero(before_new != _NOBODY)
        self.behind.all[before_new[follows]] = first + follows

    def _add_pieces(self, rows: list[tuple[IndexedTurn, indexing.TurnIndex]], first: int) -> None:
        pieces = [piece for _, index in rows for piece in index.pieces]
        place = len(self.turn)
        self.turn.extend(
            np.repeat(
                np.arange(first, first + len(rows), dtype=np.int32),
                [len(index.pieces) for _, index in rows],
            )
        )
        self.start.extend([piece.start for piece in pieces])
        self.end.extend([piece.end for piece in pieces])
        self.tokens.extend([piece.tokens for piece in pieces])
        self.marks.extend([piece.marks for piece in pieces])
        self.capitals.extend([piece.capitals for piece in pieces])
        counts = np.frombuffer(b"".join(piece.counts for piece in pieces), np.uint8)
        sizes = np.array([len(piece.counts) for piece in pieces], np.int64)
        owners = np.repeat(np.arange(place, place + len(pieces), dtype=np.int32), sizes)
        totals = np.bincount(owners - place, weights=counts, minlength=len(pieces))
        self.words.extend(totals.astype(np.int32))
        terms = np.frombuffer(b"".join(piece.terms for piece in pieces), np.uint32)
        self.postings.extend(terms, owners, counts)
        said = [
            (place + at, *piece.days[n : n + 2])
            for at, piece in enumerate(pieces)
            for n in range(0, len(piece.days), 2)
        ]
        if said:
            self.dates.extend(said)
        if self.vectors is not None:
            self._add_vectors(self.vectors, rows)

    def _add_vectors(
        self, vectors: Growing, rows: list[tuple[IndexedTurn, indexing.TurnIndex]]
    ) -> None:
        width = vectors.all.shape[1]
        for turn, index in rows:
            size = len(index.pieces) * width
            same = turn.maker == self.maker and len(index.vectors) == size
            held = index.vectors if same else bytes(size)  # of nobody: compared with nothing
            part = np.frombuffer(held, np.int8).reshape(-1, width)
            vectors.extend(part)
            self.lengths.extend(lengths_of(part))

    def alike(self, vector: Floats) -> Floats:
        """How like each piece's vector is to one of length 1: the cosine, all of them looked at.

        A piece that has none of this embedder's is as like as the others are on the whole: by its
        meaning it is neither raised nor lowered.
        """
        if self.vectors is None:
            return np.zeros(0, np.float32)
        alike = products(self.vectors.all, vector)
        is_placed = self.lengths.all > 0
        placed = alike[is_placed] / self.lengths.all[is_placed]
        alike[is_placed] = placed
        alike[~is_placed] = placed.mean() if len(placed) else 0.0
        return alike
