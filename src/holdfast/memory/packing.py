"""Choose what goes into a budget of tokens, best first by worth for its length.

packing: after ranking and passages. First pieces are chosen by numbers alone, with what their lines
will cost; then the chosen turns are opened, the text is counted as it stands, and the least worthy
leave until it fits: so the budget holds for the text and not for an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.passages import Passage, in_order, rendered, shown
from holdfast.memory.ranking import Ranked
from holdfast.memory.weights import DENSITY
from holdfast.store.turn_shelf import Remembered

_HEADER_TOKENS = 7
_GAP_TOKENS = 2
_LOOKED_AT = 3_000
"""Pieces that are tried at most: behind these nothing is worth its room."""
_MISSES = 40
"""Pieces in a row without room, after which there is none."""
_SIGNALS = 6


class Chosen(NamedTuple):
    """A turn that is to be shown, with its pieces."""

    turn: int
    pieces: list[int]
    worth: float
    """Of its best piece, for its length."""


class Room(NamedTuple):
    """What there is room for."""

    budget: int
    most: int | None
    """Turns."""
    session: str | None
    """Only of this one."""


def choose(
    arrays: ScopeArrays, ranked: Ranked, room: Room, count: Callable[[str], int]
) -> list[Chosen]:
    """Pieces by worth until the budget is used, by their turns, the worthiest first."""
    tokens = arrays.tokens.all
    lines = [count(f"{name}: \n") for name in arrays.names]
    worth = ranked.scores - np.float32(DENSITY) * np.log(np.maximum(tokens, 1)).astype(np.float32)
    if room.session is not None:
        number = arrays.sessions.get(room.session, -1)
        worth = np.where((arrays.session.all == number)[arrays.turn.all], worth, -np.inf)
    chosen: dict[int, Chosen] = {}
    days: set[int] = set()
    left, misses = room.budget, 0
    for piece in _best(worth, _LOOKED_AT):
        if not np.isfinite(worth[piece]) or misses > _MISSES:
            break
        turn = int(arrays.turn.all[piece])
        day = int(arrays.day.all[turn])
        is_new = turn not in chosen
        cost = int(tokens[piece]) + (lines[arrays.name.all[turn]] if is_new else _GAP_TOKENS)
        cost += 0 if day in days else _HEADER_TOKENS
        if cost > left or (is_new and room.most is not None and len(chosen) >= room.most):
            misses += 1
            continue
        left, misses = left - cost, 0
        days.add(day)
        chosen.setdefault(turn, Chosen(turn, [], float(worth[piece]))).pieces.append(int(piece))
    return list(chosen.values())


def _best(worth: np.ndarray[tuple[int], np.dtype[np.float32]], most: int) -> Sequence[int]:
    """The best places, best first; of equals the later."""
    is_long = len(worth) > most
    places = np.argpartition(-worth, most)[:most] if is_long else np.arange(len(worth))
    order = np.lexsort((-places, -worth[places]))
    best: Sequence[int] = places[order].tolist()
    return best


def passage_of(arrays: ScopeArrays, ranked: Ranked, chosen: Chosen, turn: Remembered) -> Passage:
    """A chosen turn, opened."""
    best = max(chosen.pieces, key=lambda piece: ranked.scores[piece])
    spans = [(int(arrays.start.all[p]), int(arrays.end.all[p])) for p in chosen.pieces]
    whole = len(chosen.pieces) == int(arrays.pieces.all[chosen.turn])
    parts = {name: float(values[best]) for name, values in ranked.signals.items()}
    return Passage(
        turn_id=turn.id,
        session=turn.session,
        role=turn.role,
        name=turn.name,
        at=turn.at,
        number=turn.number,
        text=shown(turn, spans),
        whole=whole and max(end for _, end in spans) >= len(turn.content),
        score=float(ranked.scores[best]),
        signals=_strongest(parts),
    )


def _strongest(parts: Mapping[str, float]) -> dict[str, float]:
    ordered = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return {name: round(value, 3) for name, value in ordered[:_SIGNALS] if round(value, 3)}


def packed(
    passages: Sequence[Passage], budget: int, count: Callable[[str], int]
) -> tuple[list[Passage], str, int]:
    """As many passages, the worthiest first, as fit: in order, with their text and its tokens."""
    fitting = list(passages)
    while fitting:
        ordered = in_order(fitting)
        text = rendered(ordered)
        tokens = count(text)
        if tokens <= budget:
            return ordered, text, tokens
        # Each passage that leaves frees about its share: as many go as the excess needs.
        excess = tokens - budget
        while fitting and excess > 0:
            excess -= max(1, count(fitting.pop().text))
    return [], "", 0
