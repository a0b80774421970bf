"""Choose a strategy, run it, fall back to a simpler one, and never lose an anchor.

engine: the last step of trimming; used by fit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from holdfast.errors import AnchorPreservationError, HoldfastError
from holdfast.store.records import Edit
from holdfast.trim.edits import fold, shorten_results
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.strategies import (
    STRATEGIES,
    ContextStrategy,
    FoldStrategy,
    Trimmed,
    edited,
    shortened_edit,
    strategy_named,
)

# When all that may go is gone, results among the anchors are cut, in steps.
_LAST_RESORT = (8000, 2000, 500)


class Effect(msgspec.Struct, frozen=True):
    """What a strategy did so far."""

    strategy: str
    runs: int
    reached: int
    """Runs in which it reached its target on its own."""
    failed: int
    """Runs in which it raised or broke what it was given, and exchanges were folded instead."""
    tokens_saved: int


class ContextOptimizationEngine:
    """Trims pieces to a target with the strategy that suits them; safe to share between threads."""

    def __init__(self) -> None:
        self._effects: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def select(self, pieces: Sequence[Piece]) -> ContextStrategy:
        """The strategy for a conversation: shorten results where they are most of it."""
        total = sum(piece.tokens for piece in pieces)
        shorter = STRATEGIES["progressive"].estimate_savings(pieces)
        return STRATEGIES["summarise" if shorter > 0.4 * total else "fold"]

    def optimize(
        self,
        pieces: list[Piece],
        *,
        target: float,
        most: float,
        bench: Bench,
        strategy: str | ContextStrategy = "auto",
    ) -> Trimmed:
        """Bring pieces to `target` tokens if possible, and to at most `most` in any case.

        Raises AnchorPreservationError if what must be kept does not fit `most` on its own.
        """
        chosen = self._chosen(strategy, pieces)
        before = sum(piece.tokens for piece in pieces)
        if not chosen.should_trim(before, target):
            return Trimmed(pieces, ())
        trimmed = self._run(chosen, pieces, target, bench)
        if trimmed.tokens > most:
            trimmed = self._emergency(trimmed, most, bench)
        if trimmed.tokens > most:
            raise _too_large(trimmed.pieces, most)
        return trimmed

    def preview(
        self,
        pieces: list[Piece],
        *,
        target: float,
        bench: Bench,
        strategy: str | ContextStrategy = "auto",
    ) -> Trimmed:
        """What a strategy would do; nothing is remembered."""
        chosen = self._chosen(strategy, pieces)
        return chosen.trim(list(pieces), target, bench)

    def effects(self) -> list[Effect]:
        """How well each strategy did (001-10)."""
        with self._lock:
            return [Effect(name, *numbers) for name, numbers in self._effects.items()]

    def _chosen(self, strategy: str | ContextStrategy, pieces: Sequence[Piece]) -> ContextStrategy:
        if strategy == "auto":
            return self.select(pieces)
        return strategy_named(strategy) if isinstance(strategy, str) else strategy

    def _run(
        self,
        chosen: ContextStrategy,
        pieces: list[Piece],
        target: float,
        bench: Bench,
    ) -> Trimmed:
        before = sum(piece.tokens for piece in pieces)
        try:
            trimmed = chosen.trim(list(pieces), target, bench)
            sound = keeps_promises(pieces, trimmed.pieces)
        except HoldfastError:
            raise
        except Exception:  # noqa: BLE001 - a strategy may be another's code (001-60)
            sound = False
        if not sound:
            self._note(chosen.name, 0, failed=True)
            return FoldStrategy().trim(pieces, target, bench)
        now = trimmed.tokens
        self._note(chosen.name, before - now, reached=now <= target)
        return trimmed

    def _emergency(self, trimmed: Trimmed, most: float, bench: Bench) -> Trimmed:
        """Fold all that is no anchor, then cut results among the anchors (C15, C21)."""
        for tail in (_since_last_answer(trimmed.pieces), 0):  # the last answer goes last (004-67)
            work = _Emergency(trimmed, most, bench, tail)
            if work.fits:
                return work.done()
        work.shorten_results()
        if not work.fits:
            work.take_out_the_rest()
        return work.done()

    def _note(
        self, name: str, saved: float, *, reached: bool = False, failed: bool = False
    ) -> None:
        with self._lock:
            numbers = self._effects.setdefault(name, [0, 0, 0, 0])
            for n, more in enumerate((1, reached, failed, round(saved))):
                numbers[n] += more


class _Emergency:
    """What is left when all but the anchors and a tail is folded, and what can still be done."""

    def __init__(
        self,
        trimmed: Trimmed,
        most: float,
        bench: Bench,
        tail: int,
    ) -> None:
        folded = FoldStrategy(tail=tail).trim(trimmed.pieces, 0, bench)
        self.bench = bench
        self.pieces = folded.pieces
        self.edits = [*trimmed.edits, *folded.edits]
        self.excess = folded.tokens - most
        for n, piece in enumerate(self.pieces):
            if piece.fold is not None and not self.fits:
                short = fold([piece], bench, terse=True)
                short = msgspec.structs.replace(short, tokens=bench.measure(short))
                why = "nothing else may go"
                self._put(n, short, edited("fold", "shortened a digest", why, [piece], short))

    @property
    def fits(self) -> bool:
        return self.excess <= 0

    def done(self) -> Trimmed:
        return Trimmed(self.pieces, tuple(self.edits))

    def shorten_results(self) -> None:
        """Cut the results that are left, all of them a little before any of them much."""
        for longest in _LAST_RESORT:
            for n, piece in enumerate(self.pieces):
                if self.fits:
                    return
                shorter = shorten_results(piece, self.bench, longest)
                if shorter is None:
                    continue
                # Alone, an exchange may cost more than where it stands: old thinking is not read.
                share = self.bench.measure(shorter) / max(1.0, self.bench.measure(piece))
                if share < 1:
                    shorter = msgspec.structs.replace(shorter, tokens=piece.tokens * share)
                    self._put(n, shorter, shortened_edit("it must fit", piece, shorter))

    def take_out_the_rest(self) -> None:
        """Give up the lines that say what is gone, and what is shorter than such a line."""
        left = []
        for piece in self.pieces:
            if piece.anchored or self.fits:
                left.append(piece)
                continue
            known = piece if piece.fold is not None else fold([piece], self.bench, terse=True)
            gone = msgspec.structs.replace(known, tokens=0)
            what = "took out an exchange" if piece.fold is None else "took out a digest"
            self.edits.append(edited("drop", what, "nothing else may go", [piece], gone))
            self.excess -= piece.tokens
        self.pieces = left

    def _put(self, n: int, new: Piece, why: Edit) -> None:
        self.edits.append(why)
        self.excess -= self.pieces[n].tokens - new.tokens
        self.pieces[n] = new


def _since_last_answer(pieces: Sequence[Piece]) -> int:
    """How many pieces there are from the last answer on; 0 if there is none."""
    answers = (n for n in range(1, len(pieces) + 1) if pieces[-n].kind in ("assistant", "tool"))
    return next(answers, 0)


def keeps_promises(before: Sequence[Piece], after: Sequence[Piece]) -> bool:
    """Whether a trim left every anchor as it was, and stands for every message once, in order."""
    n = 0
    for piece in after:
        replaced = []
        while n < len(before) and before[n].stop <= piece.stop:
            replaced.append(before[n])
            n += 1
        if not replaced or (replaced[0].start, replaced[-1].stop) != (piece.start, piece.stop):
            return False
        if any(old.anchored and old is not piece for old in replaced):
            return False
        if len(piece.messages) not in (1, piece.stop - piece.start):
            return False
    return n == len(before)


def _too_large(pieces: Sequence[Piece], most: float) -> AnchorPreservationError:
    kept = [piece for piece in pieces if piece.anchored]
    listed = ", ".join(f"message {p.start} ({p.tokens:.0f})" for p in kept[:8])
    total = sum(piece.tokens for piece in pieces)
    return AnchorPreservationError(
        f"what must be kept has {total:.0f} tokens, and {most:.0f} are left for messages: {listed}",
        where="messages",
        fix="Raise the limit, offer fewer tools, or keep fewer anchors.",
    )
