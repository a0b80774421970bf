"""The last measures if a request does not fit after folding, in this order.

Digests become terse; the middle of long results is cut, a little of each before much of any, those
of less important anchors first; then pasted documents are cited, and the middle of other long user
texts is cut; then the lines about removed content are removed, and finally more of the texts.
Anchors are always kept, of a long text both ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Protocol

import msgspec

from holdfast.store.records import Edit
from holdfast.trim.chains import Chain, FoldChain, InTurn, TrimState, edits_by_piece
from holdfast.trim.documents import UnreadDocumentsError
from holdfast.trim.edits import edited, folded, shorten_results, shortened_edit, taken_out
from holdfast.trim.gists import Gist
from holdfast.trim.long_texts import (
    LEAST_TEXT,
    LONG_TEXT,
    ROOMS,
    TextCutter,
    by_age,
    cite_documents,
    document_requests,
    lengths,
)
from holdfast.trim.pieces import Bench, Piece

_LENGTHS = (8000, 2000, 500)
"""Characters of a result. A page, a screen, and what still shows how it begins and ends."""
_WHY = "nothing else may go"


def emergency(trimmed: TrimState, bench: Bench, most: float = math.inf) -> Chain:
    """Everything that may still go, from a state on: the oldest first, the last answer last.

    `most` are the tokens that fit: texts are not cut to lengths far above that.
    """
    free = [n for n, piece in enumerate(trimmed.pieces) if not piece.anchored]
    return InTurn(FoldChain(trimmed, free, bench), lambda state: _LastResort(state, bench, most))


class _Lessen(Protocol):
    """Shows less of a piece, with an edit; returns None if nothing of it may be removed."""

    def __call__(self, piece: Piece, /, *, most: int) -> tuple[Piece, Edit] | None: ...


class _Slot:
    """A place in the conversation, and what became of it."""

    __slots__ = ("earlier", "edits", "piece", "source")

    def __init__(self, piece: Piece, edits: tuple[Edit, ...]) -> None:
        self.source = piece
        self.piece: Piece | None = piece
        self.earlier = self.edits = edits


class _LastResort:
    """A chain: terse digests, cut results, cited documents, cut texts, no digests, less text."""

    def __init__(self, trimmed: TrimState, bench: Bench, most: float) -> None:
        edits = edits_by_piece(trimmed)
        self._slots = [_Slot(piece, edits.get(n, ())) for n, piece in enumerate(trimmed.pieces)]
        self._bench = bench
        self._most = most
        self._cutter = TextCutter(bench)
        self.guess = trimmed.tokens
        self._steps = self._descent()

    def advance(self) -> bool:
        return next(self._steps, False)

    def state(self) -> TrimState:
        pieces = [slot.piece for slot in self._slots if slot.piece is not None]
        return TrimState(pieces, tuple(edit for slot in self._slots for edit in slot.edits))

    def _descent(self) -> Iterator[bool]:
        for run in self._free_runs():
            yield from self._say_less(run)
        for most in _LENGTHS:
            # Anchors with a lower priority have their results cut first.
            for slot in sorted(self._slots, key=lambda slot: slot.source.priority):
                if self._shorten(slot, most):
                    yield True
        yield from self._cite_documents()
        yield from self._cut_texts(LONG_TEXT)
        for n, slot in enumerate(self._slots):
            if slot.piece is not None and not slot.piece.anchored and self._take_out(n):
                yield True
        yield from self._cut_texts(LEAST_TEXT)

    def _free_runs(self) -> list[list[_Slot]]:
        runs: list[list[_Slot]] = [[]]
        for slot in self._slots:
            if slot.source.anchored:
                runs.append([])
            else:
                runs[-1].append(slot)
        return [run for run in runs if run]

    def _say_less(self, run: list[_Slot]) -> Iterator[bool]:
        """Put a terse digest in the place of a run; if that may not be, of its digests."""
        if self._fold_tersely(run):
            yield True
        elif len(run) > 1:
            for slot in run:
                if slot.source.fold is not None and self._fold_tersely([slot]):
                    yield True

    def _fold_tersely(self, run: Sequence[_Slot]) -> bool:
        gist = Gist()
        for slot in run:
            gist.add(slot.source)
        if gist.terse_guess >= gist.tokens and not gist.is_one_digest:
            return False
        terse = folded(gist, self._bench, terse=True)
        if terse is None or terse.tokens >= gist.tokens:
            return False
        earlier_turn = gist.is_one_digest and not run[0].edits
        what = "shortened a digest" if earlier_turn else "folded into a digest"
        edit = edited("fold", what, _WHY, gist.pieces, terse)
        for slot in run:
            slot.piece, slot.edits = None, ()
        run[0].piece, run[0].edits = terse, (edit,)
        self.guess -= gist.tokens - terse.tokens
        return True

    def _shorten(self, slot: _Slot, most: int) -> bool:
        if slot.piece is None or slot.piece.fold is not None:
            return False
        shorter = shorten_results(slot.source, self._bench, most)
        if shorter is None:
            return False
        # Alone, an exchange may cost more than in its place: old thinking is not read.
        share = self._bench.measure(shorter) / max(1.0, self._bench.measure(slot.source))
        tokens = slot.source.tokens * share
        if tokens >= slot.piece.tokens:
            return False
        shorter = msgspec.structs.replace(shorter, tokens=tokens)
        edit = shortened_edit("it must fit", slot.source, shorter)
        self.guess -= slot.piece.tokens - tokens
        slot.piece, slot.edits = shorter, (*slot.earlier, edit)
        return True

    def _cite_documents(self) -> Iterator[bool]:
        """Cite pasted documents; where a citation is not made yet, name all that may follow it."""
        slots = self._by_age()
        for n, slot in enumerate(slots):
            try:
                yield from self._lessened(slot, partial(cite_documents, bench=self._bench), ROOMS)
            except UnreadDocumentsError as unread:
                pieces = [later.piece for later in slots[n:] if later.piece is not None]
                upcoming = [d for p in pieces for room in ROOMS for d in document_requests(p, room)]
                raise UnreadDocumentsError((*unread.requests, *upcoming)) from None

    def _cut_texts(self, least: int) -> Iterator[bool]:
        """Cut long texts ever shorter, each time from the whole."""
        for slot in self._by_age():
            if slot.piece is not None:
                sizes = lengths(slot.piece, least, self._most)
                yield from self._lessened(slot, self._cutter.shorten, sizes)

    def _by_age(self) -> list[_Slot]:
        """The places whose texts may be touched, the oldest first and the latest question last."""
        remaining = [slot for slot in self._slots if slot.piece is not None]
        return [
            remaining[n]
            for n in by_age([slot.piece for slot in remaining if slot.piece is not None])
        ]

    def _lessened(self, slot: _Slot, lessen: _Lessen, sizes: Iterable[int]) -> Iterator[bool]:
        """Show ever less of a place, each time starting from its first version."""
        original, earlier = slot.piece, slot.edits
        if original is None:
            return
        tokens = original.tokens
        for most in sizes:
            less = lessen(original, most=most)
            if less is None or less[0].tokens >= tokens:
                continue
            slot.piece, slot.edits = less[0], (*earlier, less[1])
            self.guess -= tokens - less[0].tokens
            tokens = less[0].tokens
            yield True

    def _take_out(self, n: int) -> bool:
        """Remove a piece; the next one, else the previous one, replaces it."""
        piece, neighbour = self._slots[n].piece, self._neighbour(n)
        if piece is None or neighbour is None or neighbour.piece is None:
            return False
        replacement = taken_out(piece, neighbour.piece, self._bench)
        if replacement is None:
            return False
        neighbour.piece, edit = replacement
        neighbour.edits = (edit, *neighbour.edits)
        self._slots[n].piece, self._slots[n].edits = None, ()
        self.guess -= piece.tokens
        return True

    def _neighbour(self, n: int) -> _Slot | None:
        places = chain(range(n + 1, len(self._slots)), range(n - 1, -1, -1))
        return next((self._slots[at] for at in places if self._slots[at].piece is not None), None)
