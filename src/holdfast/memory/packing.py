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
from holdfast.search import top
from holdfast.store.turn_shelf import Remembered

_HEADROOM = 1.02
"""More is chosen than fits by the costs of single pieces: together they take a little less, and
what is over leaves again when the text is counted."""
_HEADER_TOKENS = 4
"""Of a day; the first has its year too, which is three more."""
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
    # The space belongs to the first word behind it, and the end of the line to the full stop.
    lines = [count(f"{name}:") for name in arrays.names]
    worth = ranked.scores - np.float32(DENSITY) * np.log(np.maximum(tokens, 1)).astype(np.float32)
    if room.session is not None:
        number = arrays.sessions.get(room.session, -1)
        worth = np.where((arrays.session.all == number)[arrays.turn.all], worth, -np.inf)
    best = top.best(worth, _LOOKED_AT, later_first=True)
    turns = arrays.turn.all[best]
    rows = zip(
        best.tolist(),
        turns.tolist(),
        worth[best].tolist(),
        tokens[best].tolist(),
        arrays.day.all[turns].tolist(),
        arrays.name.all[turns].tolist(),
        strict=True,
    )
    chosen: dict[int, Chosen] = {}
    days: set[int] = set()
    left, misses = round(room.budget * _HEADROOM), 0
    for piece, turn, value, size, day, name in rows:
        if value == -np.inf or misses > _MISSES:
            break
        is_new = turn not in chosen
        cost = size + (lines[name] if is_new else _GAP_TOKENS)
        cost += 0 if day in days else _HEADER_TOKENS
        if cost > left or (is_new and room.most is not None and len(chosen) >= room.most):
            misses += 1
            continue
        left, misses = left - cost, 0
        days.add(day)
        chosen.setdefault(turn, Chosen(turn, [], value)).pieces.append(piece)
    return list(chosen.values())


def passages_of(
    arrays: ScopeArrays,
    ranked: Ranked,
    chosen: Sequence[Chosen],
    opened: Mapping[int, Remembered],
) -> list[Passage]:
    """Chosen turns, opened: by their places in the store; those that went meanwhile are missing."""
    scores, start, end = ranked.scores, arrays.start.all, arrays.end.all
    best = [max(each.pieces, key=scores.__getitem__) for each in chosen]
    parts = np.stack([values[best] for values in ranked.signals.values()], axis=1).tolist()
    passages = []
    for each, piece, values in zip(chosen, best, parts, strict=True):
        turn = opened.get(int(arrays.place.all[each.turn]))
        if turn is None:
            continue
        spans = list(zip(start[each.pieces].tolist(), end[each.pieces].tolist(), strict=True))
        is_all = len(each.pieces) == int(arrays.pieces.all[each.turn])
        passages.append(
            Passage(
                turn_id=turn.id,
                session=turn.session,
                role=turn.role,
                name=turn.name,
                at=turn.at,
                number=turn.number,
                text=shown(turn, spans),
                whole=is_all and max(stop for _, stop in spans) >= len(turn.content),
                score=float(scores[piece]),
                signals=_strongest(dict(zip(ranked.signals, values, strict=True))),
            )
        )
    return passages


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
