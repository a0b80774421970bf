"""Select pieces for a token budget, by score and length.

Pieces are first selected by estimated cost. Then the turns are read, the rendered text is counted,
and the worst passages are dropped until it fits: the budget holds for the text, not for an
estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.passages import Passage, join_spans, render_passages, sort_by_time
from holdfast.memory.ranking import PieceScores
from holdfast.memory.weights import DENSITY
from holdfast.search import top
from holdfast.store.turn_store import RememberedTurn

_HEADROOM = 1.02
"""Factor by which the estimate may exceed the budget: rendered together, pieces take a little less
than one by one. The excess is dropped when the text is counted."""
_HEADER_TOKENS = 4
"""Tokens of a day heading. The first heading has a year too, which takes three more."""
_GAP_TOKENS = 2
_MOST_PIECES = 3_000
"""Maximum pieces that are tried; no later piece is worth its tokens."""
_MISSES = 40
"""Pieces in a row that do not fit, after which the selection ends."""
_SIGNALS = 6


class TurnSelection(NamedTuple):
    """A turn to be shown and its selected pieces."""

    turn: int
    pieces: list[int]
    worth: float
    """Worth of the best piece: its score less the price of its tokens."""


class RecallLimits(NamedTuple):
    """Limits of a recall."""

    budget: int
    max_turns: int | None
    session: str | None
    """The only session to select from; None for all."""


def select_turns(
    arrays: ScopeArrays, ranked: PieceScores, limits: RecallLimits, count: Callable[[str], int]
) -> list[TurnSelection]:
    """Return the turns of the best pieces that fit the budget, best turn first."""
    tokens = arrays.tokens.all
    # No token for the space and the newline: the space joins the next word, the newline the full
    # stop.
    lines = [count(f"{name}:") for name in arrays.names]
    worth = ranked.scores - np.float32(DENSITY) * np.log(np.maximum(tokens, 1)).astype(np.float32)
    if limits.session is not None:
        number = arrays.sessions.get(limits.session, -1)
        worth = np.where((arrays.session.all == number)[arrays.turn.all], worth, -np.inf)
    best = top.best(worth, _MOST_PIECES, later_first=True)
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
    chosen: dict[int, TurnSelection] = {}
    days: set[int] = set()
    remaining, misses = round(limits.budget * _HEADROOM), 0
    for piece, turn, value, size, day, name in rows:
        if value == -np.inf or misses > _MISSES:
            break
        is_new = turn not in chosen
        cost = size + (lines[name] if is_new else _GAP_TOKENS)
        cost += 0 if day in days else _HEADER_TOKENS
        if cost > remaining or (
            is_new and limits.max_turns is not None and len(chosen) >= limits.max_turns
        ):
            misses += 1
            continue
        remaining, misses = remaining - cost, 0
        days.add(day)
        chosen.setdefault(turn, TurnSelection(turn, [], value)).pieces.append(piece)
    return list(chosen.values())


def build_passages(
    arrays: ScopeArrays,
    ranked: PieceScores,
    chosen: Sequence[TurnSelection],
    turns_by_place: Mapping[int, RememberedTurn],
) -> list[Passage]:
    """Return the passages of the selected turns; turns deleted in the meantime are left out.

    `turns_by_place` has the turns by their places in the store.
    """
    scores, start, end = ranked.scores, arrays.start.all, arrays.end.all
    best = [max(each.pieces, key=scores.__getitem__) for each in chosen]
    parts = np.stack([values[best] for values in ranked.signals.values()], axis=1).tolist()
    passages = []
    for each, piece, values in zip(chosen, best, parts, strict=True):
        turn = turns_by_place.get(int(arrays.place.all[each.turn]))
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
                text=join_spans(turn, spans),
                whole=is_all and max(stop for _, stop in spans) >= len(turn.content),
                score=float(scores[piece]),
                signals=_strongest(dict(zip(ranked.signals, values, strict=True))),
            )
        )
    return passages


def _strongest(parts: Mapping[str, float]) -> dict[str, float]:
    ordered = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return {name: round(value, 3) for name, value in ordered[:_SIGNALS] if round(value, 3)}


def fit_passages(
    passages: Sequence[Passage], budget: int, count: Callable[[str], int]
) -> tuple[list[Passage], str, int]:
    """Return the best passages that fit, in time order, with their text and its token count.

    `passages` are in order of worth, best first.
    """
    remaining = list(passages)
    while remaining:
        ordered = sort_by_time(remaining)
        text = render_passages(ordered)
        tokens = count(text)
        if tokens <= budget:
            return ordered, text, tokens
        # Each dropped passage frees about its own tokens: drop as many as cover the excess.
        excess = tokens - budget
        while remaining and excess > 0:
            excess -= max(1, count(remaining.pop().text))
    return [], "", 0
