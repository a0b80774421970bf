"""The turns of one scope as numpy arrays, which ranking reads instead of the texts.

Rows are only appended, so that a new turn costs its own words and not those of the ten thousand
turns before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from holdfast.memory.dates import day_of
from holdfast.memory.turn_index import TurnIndex, decode_index
from holdfast.search.arrays import Floats, GrowingArray
from holdfast.search.postings import Postings, decode_counts
from holdfast.search.vectors import VectorColumn
from holdfast.store.turn_store import IndexedTurn

EPISODE_SECONDS = 3 * 3600.0
"""Length of a pause, in seconds, after which a new episode of a session begins."""
_NO_TURN = -1


class ScopeArrays:
    """The turns of one user and workspace, in the order in which they were stored."""

    def __init__(self, maker: str, dimensions: int) -> None:
        self.maker = maker
        self.last_place = 0
        self.names: dict[str, int] = {}
        """Numbers of the speakers by name."""
        self.sessions: dict[str, int] = {}
        self.postings = Postings()
        self.episodes = 0
        self._last_of: dict[int, tuple[int, float, int]] = {}
        """The last turn of each session, its time and its episode."""
        # One row per turn:
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
        """Row of the previous turn of the same session; -1 if there is none."""
        self.after = GrowingArray(np.int32)
        # One row per piece:
        self.turn = GrowingArray(np.int32)
        self.start = GrowingArray(np.int32)
        self.end = GrowingArray(np.int32)
        self.tokens = GrowingArray(np.int32)
        self.marks = GrowingArray(np.uint8)
        self.capitals = GrowingArray(np.uint8)
        self.words = GrowingArray(np.int32)
        self.vectors = VectorColumn(dimensions) if dimensions else None
        # One row per date that a piece mentions:
        self.dates = GrowingArray(np.int32, 3)
        """The piece, the first and the last day."""

    def __len__(self) -> int:
        return len(self.place)

    @property
    def nbytes(self) -> int:
        """Return the approximate memory use in bytes."""
        arrays = (value for value in vars(self).values() if isinstance(value, GrowingArray))
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return sum(array.nbytes for array in arrays) + self.postings.nbytes + vectors

    def add(self, turns: Iterable[IndexedTurn]) -> None:
        """Append turns. Vectors of another embedder are not used."""
        rows = [(turn, decode_index(turn.index)) for turn in turns]
        if rows:
            first = len(self)
            self._add_turns(rows)
            self._add_pieces(rows, first)
            self.last_place = rows[-1][0].place

    def _add_turns(self, rows: list[tuple[IndexedTurn, TurnIndex]]) -> None:
        columns: list[tuple[Any, ...]] = []
        for place, (turn, index) in enumerate(rows, len(self)):
            session = self.sessions.setdefault(turn.session, len(self.sessions))
            before, previous_at, episode = self._last_of.get(session, (_NO_TURN, 0.0, 0))
            if before == _NO_TURN or turn.at - previous_at > EPISODE_SECONDS:
                episode = self.episodes
                self.episodes += 1
            self._last_of[session] = (place, turn.at, episode)
            name = self.names.setdefault(turn.name or turn.role, len(self.names))
            speaker = (name, turn.role == "user", turn.role == "assistant")
            times = (turn.at, day_of(turn.at), turn.number)
            columns.append(
                (session, episode, *speaker, *times, index.asks, len(index.pieces), before)
            )
        first = len(self)
        self.place.extend([turn.place for turn, _ in rows])
        arrays = (
            *(self.session, self.episode, self.name, self.is_user, self.is_assistant),
            *(self.at, self.day, self.number, self.asks, self.pieces, self.before),
        )
        for array, values in zip(arrays, zip(*columns, strict=True), strict=True):
            array.extend(values)
        self.after.extend(np.full(len(rows), _NO_TURN, np.int32))
        before_new = self.before.all[first:]
        follows = np.flatnonzero(before_new != _NO_TURN)
        self.after.all[before_new[follows]] = first + follows

    def _add_pieces(self, rows: list[tuple[IndexedTurn, TurnIndex]], first: int) -> None:
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
        counts = decode_counts([(piece.terms, piece.counts) for piece in pieces], place)
        totals = np.bincount(counts.texts - place, weights=counts.counts, minlength=len(pieces))
        self.words.extend(totals.astype(np.int32))
        self.postings.extend(counts)
        date_rows = [
            (place + at, *piece.days[n : n + 2])
            for at, piece in enumerate(pieces)
            for n in range(0, len(piece.days), 2)
        ]
        if date_rows:
            self.dates.extend(date_rows)
        if self.vectors is not None:
            self._add_vectors(self.vectors, rows)

    def _add_vectors(
        self, vectors: VectorColumn, rows: list[tuple[IndexedTurn, TurnIndex]]
    ) -> None:
        for turn, index in rows:
            size = len(index.pieces) * vectors.dimensions
            is_comparable = turn.maker == self.maker and len(index.vectors) == size
            # Vectors of two embedders are not comparable; zeros mark a piece without one.
            encoded = index.vectors if is_comparable else bytes(size)
            vectors.extend(np.frombuffer(encoded, np.int8).reshape(-1, vectors.dimensions))

    def cosines(self, vector: Floats) -> Floats:
        """Return the cosine of each piece's vector with `vector`, which has length 1.

        A piece without a vector of this embedder gets the mean of the others, so that its meaning
        neither raises nor lowers it.
        """
        if self.vectors is None:
            return np.zeros(0, np.float32)
        cosines = self.vectors.cosines(vector)
        is_known = self.vectors.is_known
        known_cosines = cosines[is_known]
        cosines[~is_known] = known_cosines.mean() if len(known_cosines) else 0.0
        return cosines
