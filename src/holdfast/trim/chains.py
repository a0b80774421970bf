"""Sequences of ever smaller states, independent of any budget, which only decides where to stop.

So a larger budget never keeps less than a smaller one, and never fails where that succeeded: both
follow the same sequence, and the larger stops earlier or at the same step. States are estimated
cheaply first, and built only when requested. Content that one step removes never returns in a
later one.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from holdfast.store.records import Edit
from holdfast.trim.edits import (
    edited,
    folded,
    shorten_results,
    shortened_edit,
    where,
)
from holdfast.trim.gists import Gist
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import fold_of, originals_of
from holdfast.trim.summaries import has_room
from holdfast.wire import Message


class TrimState(msgspec.Struct, frozen=True):
    """A state: pieces that replace all the client's messages, and the edits so far."""

    pieces: list[Piece]
    edits: tuple[Edit, ...]

    @property
    def tokens(self) -> float:
        """The tokens of the pieces together."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def removed_count(self) -> int:
        """Number of messages that digests replace."""
        return sum(piece.fold.messages for piece in self.pieces if piece.fold is not None)

    @property
    def tokens_saved(self) -> int:
        """Tokens that all edits removed."""
        return sum(edit.from_tokens - edit.to_tokens for edit in self.edits)

    @property
    def anchors_preserved(self) -> tuple[str, ...]:
        """Places of the exchanges with anchors, in the client's numbering."""
        return tuple(where(piece.start, piece.stop) for piece in self.pieces if piece.anchored)

    @property
    def summary(self) -> str:
        """The text of the digests."""
        digests = (m for piece in self.pieces for m in piece.messages if fold_of(m) is not None)
        texts = (block for message in digests for block in message.blocks)
        return "\n".join(getattr(text, "text", "") for text in texts)


class Chain(Protocol):
    """A sequence of ever smaller states, with a position."""

    @property
    def guess(self) -> float:
        """Approximate tokens of the state at this position."""

    def advance(self) -> bool:
        """Move to the next state; return False if this was the last."""

    def state(self) -> TrimState:
        """Build the state at this place.

        If something turns out that may not leave, it is there, and the guess has risen.
        """


def states(chain: Chain, target: float, most: float = math.inf) -> Iterator[TrimState]:
    """Yield the first state of at most `target` tokens, or the last one, then later ones.

    Following states with an estimate above `most` are skipped unbuilt. The chosen state is still
    the first that fits by estimate and by count, for any budget.
    """
    while True:
        while chain.guess > target and chain.advance():
            pass
        state = chain.state()
        if chain.guess <= target or not chain.advance():
            break
    yield state
    while chain.advance():
        if chain.guess <= most:
            yield chain.state()


class SingleState:
    """A chain of one state."""

    def __init__(self, trimmed: TrimState) -> None:
        self._trimmed = trimmed
        self.guess = trimmed.tokens

    def advance(self) -> bool:
        return False

    def state(self) -> TrimState:
        return self._trimmed


class InTurn:
    """One chain, followed by another that starts at its end."""

    def __init__(self, first: Chain, then: Callable[[TrimState], Chain]) -> None:
        self._chain = first
        self._then: Callable[[TrimState], Chain] | None = then

    @property
    def guess(self) -> float:
        return self._chain.guess

    def advance(self) -> bool:
        if self._chain.advance():
            return True
        if self._then is None:
            return False
        self._chain, self._then = self._then(self._chain.state()), None
        return self._chain.advance()

    def state(self) -> TrimState:
        return self._chain.state()


Tell = Callable[[Sequence[Message]], str]
"""Returns a model's summary of the client's messages; empty if there is none."""


class _Run:
    """Neighbours that are folded together."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.gist = Gist()
        self.folds = False
        """Whether its digest replaces it: as soon as that is shorter, and from then on."""

    @property
    def stop(self) -> int:
        return self.first + len(self.gist.pieces)


class FoldChain:
    """Folds one more piece at each step, in order; neighbours share a digest."""

    def __init__(
        self,
        trimmed: TrimState,
        order: Sequence[int],
        bench: Bench,
        *,
        tell: Tell | None = None,
        told_tokens: float = 0,
    ) -> None:
        self._pieces = trimmed.pieces
        self._edits = edits_by_piece(trimmed)
        self._order = order
        self._bench = bench
        self._tell = tell
        self._told_tokens = bench.summary_tokens if tell is None else told_tokens
        self._digests: dict[tuple[int, int], tuple[Piece, Edit]] = {}
        self._stuck: set[int] = set()
        """Pieces that are known not to be storable: they stay."""
        self._begin()

    def _begin(self) -> None:
        self._position = 0
        self._runs: list[_Run] = []
        self.guess = sum(piece.tokens for piece in self._pieces)

    def advance(self) -> bool:
        while self._position < len(self._order):
            if self._step():
                return True
        return False

    def _step(self) -> bool:
        """Take the next piece; return whether that changes the state."""
        index = self._order[self._position]
        self._position += 1
        if index in self._stuck:
            return False
        if not self._runs or self._runs[-1].stop != index:
            self._runs.append(_Run(index))
        run = self._runs[-1]
        saved = self._saving(run) if run.folds else 0.0
        run.gist.add(self._pieces[index])
        run.folds = run.folds or (not run.gist.is_one_digest and self._saving(run) > 0)
        if run.folds:
            self.guess += saved - self._saving(run)
        return run.folds

    def _saving(self, run: _Run) -> float:
        summary_tokens = self._told_tokens if self._is_told(run.gist) else 0.0
        return run.gist.tokens - run.gist.guess - summary_tokens

    def _is_told(self, gist: Gist) -> bool:
        return has_room(gist.tokens, self._told_tokens)

    def state(self) -> TrimState:
        runs = self._folded_runs()
        while runs is None:  # some pieces may not leave: go to the same place without them
            position = self._position
            self._begin()
            while self._position < position:
                self._step()
            runs = self._folded_runs()
        pieces: list[Piece] = []
        edits: list[Edit] = []
        stop = 0
        for run, (digest, edit) in runs:
            pieces += self._pieces[stop : run.first]
            edits += self._edits_between(stop, run.first)
            pieces.append(digest)
            edits.append(edit)
            stop = run.stop
        pieces += self._pieces[stop:]
        edits += self._edits_between(stop, len(self._pieces))
        return TrimState(pieces, tuple(edits))

    def _edits_between(self, start: int, stop: int) -> Iterator[Edit]:
        if self._edits:
            for n in range(start, stop):
                yield from self._edits.get(n, ())

    def _folded_runs(self) -> list[tuple[_Run, tuple[Piece, Edit]]] | None:
        """Return the runs with their digests; None if more pieces cannot be stored."""
        runs = []
        for run in self._runs:
            if not run.folds:
                continue
            digest = self._digest(run)
            if digest is None:
                self._stuck |= self._unkept(run.first, run.stop)
                # Where there is one there may be a thousand: they are looked for once, not one at
                # each step that meets the next.
                for start, stop in self._ranges():
                    self._stuck |= self._unkept(start, stop)
                return None
            runs.append((run, digest))
        return runs

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Yield neighbouring pieces that may be removed and are not known to be stuck."""
        free = [n for n in self._order if n not in self._stuck]
        start = 0
        for at in range(1, len(free) + 1):
            if at == len(free) or free[at] != free[at - 1] + 1:
                yield free[start], free[at - 1] + 1
                start = at

    def _digest(self, run: _Run) -> tuple[Piece, Edit] | None:
        key = (run.first, run.stop)
        if key not in self._digests:
            piece = self._folded(run.gist)
            if piece is None:
                return None
            why = "the oldest that may go"
            edit = edited("fold", _what(piece), why, run.gist.pieces, piece)
            self._digests[key] = piece, edit
        return self._digests[key]

    def _folded(self, gist: Gist) -> Piece | None:
        if self._tell is not None and self._is_told(gist):
            summary = self._tell(gist.originals)
            piece = folded(gist, self._bench, summary=summary)
            if piece is None or piece.tokens < gist.tokens:
                return piece  # a summary may cover more than was requested
        return folded(gist, self._bench)

    def _unkept(self, start: int, stop: int) -> set[int]:
        """Return which neighbouring pieces may not be stored; none if all may together."""
        pieces = self._pieces[start:stop]
        originals = [o for piece in pieces for m in piece.messages for o in originals_of(m)]
        if self._bench.keep_run(originals, sum(piece.tokens for piece in pieces)):
            return set()
        middle = (start + stop) // 2
        if stop - start == 1:
            return {start}
        # If each half may be stored, the finding spans both: split the run there.
        return self._unkept(start, middle) | self._unkept(middle, stop) or {middle}


def _what(digest: Piece) -> str:
    """Return the description of the edit; a model's words are distinguished from extracts."""
    quotes = digest.fold is not None and digest.fold.sentences
    return "folded into a digest, with a model's summary" if quotes else "folded into a digest"


def edits_by_piece(trimmed: TrimState) -> dict[int, tuple[Edit, ...]]:
    """Return the edits of a state by their piece."""
    if not trimmed.edits:
        return {}
    starts = [piece.start for piece in trimmed.pieces]
    edits: dict[int, tuple[Edit, ...]] = {}
    for edit in trimmed.edits:
        n = max(0, bisect.bisect_right(starts, edit.start) - 1)
        edits[n] = (*edits.get(n, ()), edit)
    return edits


class Cut(msgspec.Struct, frozen=True):
    """A piece whose results are to be shortened."""

    index: int
    most: int
    """Characters that each result may keep."""
    why: str
    one_line: bool = False


class CutChain:
    """Shortens the results of one more piece at each step, in order."""

    def __init__(self, pieces: Sequence[Piece], cuts: Sequence[Cut], bench: Bench) -> None:
        self._pieces = list(pieces)
        self._cuts = iter(cuts)
        self._bench = bench
        self._edits: dict[int, Edit] = {}
        self.guess = sum(piece.tokens for piece in pieces)

    def advance(self) -> bool:
        for cut in self._cuts:
            piece = self._pieces[cut.index]
            shorter = shorten_results(piece, self._bench, cut.most, one_line=cut.one_line)
            if shorter is not None and shorter.tokens < piece.tokens:
                self._edits[cut.index] = shortened_edit(cut.why, piece, shorter)
                self._pieces[cut.index] = shorter
                self.guess -= piece.tokens - shorter.tokens
                return True
        return False

    def state(self) -> TrimState:
        return TrimState(list(self._pieces), tuple(self._edits[n] for n in sorted(self._edits)))
