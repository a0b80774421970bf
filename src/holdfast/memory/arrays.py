"""arrays: the turns of a scope as arrays, which ranking reads instead of texts.

They are built once from the store and then only appended to: a new turn costs its own words, not
those of the ten thousand before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from holdfast.memory import indexing
from holdfast.memory.dates import day_of
from holdfast.search.arrays import Floats, GrowingArray
from holdfast.search.postings import Postings, decoded
from holdfast.search.vectors import VectorColumn
from holdfast.store.turn_shelf import IndexedTurn

EPISODE_SECONDS = 3 * 3600.0
"""A pause after which a session goes on to something else."""
_NOBODY = -1


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
        self.place = GrowingArray(np.int64)
        self.session = GrowingArray(np.int32)
        self.episode = GrowingArray(np.int32)
        self.name = GrowingArray(np.int32)
        self.is_user = GrowingArray(np.bool_)
        self.is_assistant = GrowingArray(np.bool_)
        self.at = GrowingArray(np.float64)
        self.day = GrowingArray(np.int32)
        self.number = GrowingArray(np.int64)
        self.asks = GrowingArray(np.bool_)
        self.pieces = GrowingArray(np.int32)
        self.before = GrowingArray(np.int32)
        """The turn before it in its session; -1 if there is none."""
        self.behind = GrowingArray(np.int32)
        # Of pieces:
        self.turn = GrowingArray(np.int32)
        self.start = GrowingArray(np.int32)
        self.end = GrowingArray(np.int32)
        self.tokens = GrowingArray(np.int32)
        self.marks = GrowingArray(np.uint8)
        self.capitals = GrowingArray(np.uint8)
        self.words = GrowingArray(np.int32)
        self.vectors = VectorColumn(dimensions) if dimensions else None
        # Of dates that pieces say:
        self.dates = GrowingArray(np.int32, 3)
        """The piece, the first and the last day."""

    def __len__(self) -> int:
        return len(self.place)

    @property
    def nbytes(self) -> int:
        """The memory that all of it takes, roughly."""
        arrays = (value for value in vars(self).values() if isinstance(value, GrowingArray))
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return sum(array.nbytes for array in arrays) + self.postings.nbytes + vectors

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
        counts = decoded([(piece.terms, piece.counts) for piece in pieces], place)
        totals = np.bincount(counts.texts - place, weights=counts.counts, minlength=len(pieces))
        self.words.extend(totals.astype(np.int32))
        self.postings.extend(counts)
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
        self, vectors: VectorColumn, rows: list[tuple[IndexedTurn, indexing.TurnIndex]]
    ) -> None:
        for turn, index in rows:
            size = len(index.pieces) * vectors.dimensions
            same = turn.maker == self.maker and len(index.vectors) == size
            encoded = index.vectors if same else bytes(size)  # another embedder's: not comparable
            vectors.extend(np.frombuffer(encoded, np.int8).reshape(-1, vectors.dimensions))

    def cosines(self, vector: Floats) -> Floats:
        """Return the cosine of each piece's vector with one of length 1.

        A piece without a vector of this embedder has the mean of the others: its meaning neither
        raises nor lowers it.
        """
        if self.vectors is None:
            return np.zeros(0, np.float32)
        cosines = self.vectors.cosines(vector)
        is_known = self.vectors.is_known
        known = cosines[is_known]
        cosines[~is_known] = known.mean() if len(known) else 0.0
        return cosines
