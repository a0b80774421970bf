"""Choose a strategy, go down its states, fall back to a simpler one, and never lose an anchor.

Used by fit.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from holdfast.errors import AnchorPreservationError, HoldfastError
from holdfast.faults import logged_faults
from holdfast.trim.anchors import lost_anchors
from holdfast.trim.chains import Chain, SingleState, TrimState, states
from holdfast.trim.edits import where
from holdfast.trim.emergency import emergency
from holdfast.trim.pieces import Bench, Piece
from holdfast.trim.provenance import REPLACEMENT, restored
from holdfast.trim.strategies import (
    STRATEGIES,
    ChainStrategy,
    ContextStrategy,
    strategy_named,
)

_MOST_NAMED = 8


class Effect(msgspec.Struct, frozen=True):
    """The statistics of a strategy."""

    strategy: str
    runs: int
    reached: int
    """Runs in which it reached its target on its own."""
    failed: int
    """Runs in which it raised or broke a rule, and exchanges were folded instead."""
    tokens_saved: int
    lost: tuple[str, ...] = ()
    """Types of the anchors that it lost in such runs: what whoever wrote it has to mend."""


class ContextOptimizationEngine:
    """Goes down from pieces to ever smaller states; safe to share between threads."""

    def __init__(self) -> None:
        self._effects: dict[str, Effect] = {}
        self._lock = threading.Lock()

    def select(self, pieces: Sequence[Piece]) -> ContextStrategy:  # noqa: ARG002
        """Return the strategy of `auto`: folding, for any conversation.

        Conversations with mostly tool results once had them cut to fragments first: a little of
        each was left, and enough of none. Folded content can be opened completely.
        """
        return STRATEGIES["fold"]

    def ladder(
        self,
        pieces: list[Piece],
        *,
        target: float,
        bench: Bench,
        strategy: str | ContextStrategy = "auto",
        most: float = math.inf,
    ) -> Iterator[TrimState]:
        """Yield states of the pieces, each smaller than the previous one, from `target` tokens on.

        The first is the strategy's first state of at most `target` tokens, or its last one; then
        all that follow, finally those of an emergency, until nothing more may be removed. The
        states do not depend on `target`: taking the first one that fits never keeps less with a
        larger budget.

        States with an estimate above `most` tokens are skipped, except the first and the last,
        because building and counting them would be wasted.
        """
        chosen = self._chosen(strategy, pieces)
        state: TrimState | None = None
        for step in self._steps(chosen, pieces, target, most, bench):
            # A step that met content which must be kept changes nothing.
            if state is None or step.pieces != state.pieces:
                yield step
            state = step

    def preview(
        self,
        pieces: list[Piece],
        *,
        target: float,
        bench: Bench,
        strategy: str | ContextStrategy = "auto",
    ) -> TrimState:
        """Return the result of a strategy, without any side effect."""
        chosen = self._chosen(strategy, pieces)
        return chosen.trim(list(pieces), target, bench)

    def effects(self) -> list[Effect]:
        """How well each strategy did (001-10)."""
        with self._lock:
            return list(self._effects.values())

    def _chosen(self, strategy: str | ContextStrategy, pieces: Sequence[Piece]) -> ContextStrategy:
        if strategy == "auto":
            return self.select(pieces)
        return strategy_named(strategy) if isinstance(strategy, str) else strategy

    def _steps(
        self,
        chosen: ContextStrategy,
        pieces: list[Piece],
        target: float,
        most: float,
        bench: Bench,
    ) -> Iterator[TrimState]:
        """The states that a strategy leads to, then those of an emergency."""
        state = TrimState(pieces, ())
        for state in self._soft(chosen, pieces, target, most, bench):
            yield state
        chain = emergency(state, bench, most)
        while chain.advance():
            if chain.guess <= most:
                yield chain.state()
        yield chain.state()

    def _soft(
        self,
        chosen: ContextStrategy,
        pieces: list[Piece],
        target: float,
        most: float,
        bench: Bench,
    ) -> Iterator[TrimState]:
        """The states that a strategy leads to; of folding, if it fails."""
        before = sum(piece.tokens for piece in pieces)
        lost: tuple[str, ...] = ()
        try:
            soft = states(_chain(chosen, pieces, target, bench), target, most)
            first = next(soft)
            sound = keeps_promises(pieces, first.pieces)
            lost = () if sound else _lost_types(pieces, first.pieces)
        except HoldfastError:
            raise
        except Exception as error:  # noqa: BLE001 - a strategy may be another's code (001-60)
            logged_faults("holdfast.trim").add("strategy", error)
            sound = False
        if not sound:
            self._note(Effect(chosen.name, runs=1, reached=0, failed=1, tokens_saved=0, lost=lost))
            fold = STRATEGIES["fold"]
            yield from states(_chain(fold, pieces, target, bench), target, most)
            return
        reached, saved = int(first.tokens <= target), round(before - first.tokens)
        self._note(Effect(chosen.name, runs=1, reached=reached, failed=0, tokens_saved=saved))
        yield first
        yield from soft

    def _note(self, run: Effect) -> None:
        with self._lock:
            so_far = self._effects.get(run.strategy)
            self._effects[run.strategy] = run if so_far is None else _added(so_far, run)


def _added(so_far: Effect, run: Effect) -> Effect:
    return Effect(
        so_far.strategy,
        runs=so_far.runs + run.runs,
        reached=so_far.reached + run.reached,
        failed=so_far.failed + run.failed,
        tokens_saved=so_far.tokens_saved + run.tokens_saved,
        lost=tuple(sorted({*so_far.lost, *run.lost})),
    )


def _chain(strategy: ContextStrategy, pieces: list[Piece], target: float, bench: Bench) -> Chain:
    """Return the chain of a strategy: one state, if it can only reach a target."""
    if not strategy.should_trim(sum(piece.tokens for piece in pieces), target):
        return SingleState(TrimState(pieces, ()))
    if isinstance(strategy, ChainStrategy) and type(strategy).trim is ChainStrategy.trim:
        return strategy.chain(list(pieces), bench)
    return SingleState(strategy.trim(list(pieces), target, bench))


def keeps_promises(before: Sequence[Piece], after: Sequence[Piece]) -> bool:
    """Return whether a trim left anchors unchanged, and covers each message once, in order."""
    anchors = [piece for piece in after if piece.anchored]
    if [id(piece) for piece in before if piece.anchored] != [id(piece) for piece in anchors]:
        return False
    ends = [(piece.start, piece.stop) for piece in after]
    if any(first[1] != second[0] for first, second in pairwise(ends)):
        return False
    return restored([m for p in before for m in p.messages]) == restored(
        [m for p in after for m in p.messages]
    )


def _lost_types(before: Sequence[Piece], after: Sequence[Piece]) -> tuple[str, ...]:
    """Types of the anchors that a trim has lost."""
    anchors = [piece.anchor for piece in before if piece.anchor is not None]
    messages, remaining = (
        [m for piece in side for m in piece.messages] for side in (before, after)
    )
    return tuple(sorted({anchor.type for anchor in lost_anchors(anchors, messages, remaining)}))


class Beside(NamedTuple):
    """Tokens of the client's request outside of its messages, which no trim reduces."""

    system: int = 0
    tools: int = 0


def cannot_fit(
    smallest: TrimState, *, tokens: float, limit: float, beside: Beside | None = None
) -> AnchorPreservationError:
    """Return the error for a request whose smallest state is above its limit.

    It names the anchors by priority, the most important first, in the client's numbering, and
    those that would have to be removed, the least important first.
    """
    beside = beside or Beside()
    anchored = [piece for piece in smallest.pieces if piece.anchored]
    ranked = sorted(anchored, key=lambda piece: -piece.priority)
    excess = tokens - limit
    surplus: list[Piece] = []
    for piece in reversed(ranked):
        if excess <= 0:
            break
        surplus.append(piece)
        excess -= piece.tokens
    needed = f"{math.ceil(tokens):,}"
    around = [f"{name} ({part:,} tokens)" for name, part in beside._asdict().items() if part]
    ways = [f"Raise the limit to {needed} or more"]
    ways += ["offer fewer tools"] if beside.tools else []
    ways += ["shorten the system text"] if beside.system else []
    if excess <= 0:  # else not even without any of them
        ways.append(f"give up anchors: {_named(surplus)}")
    return AnchorPreservationError(
        f"what must be kept needs {needed} tokens, and the limit is {limit:,.0f}: "
        f"{', '.join([*around, _named(ranked)])}",
        where="messages",
        fix=", or ".join(filter(None, (", ".join(ways[:-1]), ways[-1]))) + ".",
        kind="input",
        limit=math.floor(limit),
        planned=math.ceil(tokens),
    )


def _named(pieces: Sequence[Piece]) -> str:
    """Pieces with their anchors and tokens, as a list."""
    names = []
    for piece in pieces[:_MOST_NAMED]:
        anchor = f"{piece.anchor.type}, " if piece.anchor is not None else ""
        names.append(f"{_own_place(piece)} ({anchor}{piece.tokens:,.0f} tokens)")
    more = len(pieces) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _own_place(piece: Piece) -> str:
    """Return the place of a piece itself, without neighbours that it replaces."""
    first, last = REPLACEMENT.get(piece.messages[0]), REPLACEMENT.get(piece.messages[-1])
    before = 0 if first is None or first.is_added else first.own
    behind = 0 if last is None or last.is_added else len(last.originals) - 1 - last.own
    return where(piece.start + before, piece.stop - behind)
