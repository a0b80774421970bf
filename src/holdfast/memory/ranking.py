"""Score each piece for a question: a weighted sum of signals.

BM25 is computed three times: over the piece, over its turn with two turns before and after, and
over the whole episode. An answer is often close to the words of the question without sharing any.
Vectors are compared over the turn and the same neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.question import RecallQuestion
from holdfast.memory.turn_index import FIRST_PERSON, RULE, TIME, WISH
from holdfast.search.arrays import Floats, Ints
from holdfast.search.bm25 import USUAL, rarity
from holdfast.search.fusion import add_signals, deviations, weight_signals

_RAREST = 6
"""Number of the question's rarest words that `rarest_words` adds up."""

_SCALED = frozenset(
    {
        *("words", "words_around", "words_of_episode"),
        *("rarest_words", "meaning", "meaning_around"),
        *("length", "pieces", "names"),
    }
)
"""Signals measured in standard deviations from their mean."""
_SHAPES = frozenset({"length", "pieces", "names"})
_MAX_DEVIATION = 2.5
"""Limit in standard deviations: otherwise one long turn among many of equal length wins for every
question."""


class PieceScores(NamedTuple):
    """The score of each piece and the parts of it."""

    scores: Floats
    signals: Mapping[str, Floats]
    """What each signal adds to the scores."""


def score_pieces(
    arrays: ScopeArrays,
    question: RecallQuestion,
    vector: Floats | None,
    weights: Mapping[str, float],
) -> PieceScores:
    """Score every piece."""
    signals = signals_of(arrays, question, vector)
    parts = weight_signals(signals, weights)
    return PieceScores(add_signals(parts.values(), (len(arrays.turn),)), parts)


def signals_of(
    arrays: ScopeArrays, question: RecallQuestion, vector: Floats | None
) -> dict[str, Floats]:
    """Return every signal of every piece."""
    turn = arrays.turn.all
    static = _static_signals(arrays)
    signals = _word_signals(arrays, static, question)
    if vector is not None and arrays.vectors is not None:
        meaning = arrays.cosines(vector)
        of_turns = np.bincount(turn, weights=meaning, minlength=len(arrays)) / np.maximum(
            arrays.pieces.all, 1
        )
        signals["meaning"] = of_turns.astype(np.float32)[turn]
        signals["meaning_around"] = _neighbour_means(static.around, of_turns)[turn]
    speakers = np.zeros(len(arrays.names) + 1, np.float32)
    for name, number in arrays.names.items():
        speakers[number] = name in question.speakers
    signals["speaker"] = speakers[arrays.name.all][turn]
    signals["date"] = _date_matches(arrays, question)
    scaled = {name: _scaled(name, values) for name, values in signals.items()}
    scaled |= static.signals
    if question.asks_advice:
        scaled["wish"] = ((arrays.marks.all & WISH) > 0).astype(np.float32)
    if question.asks_assistant:
        scaled["assistant"] = arrays.is_assistant.all[turn].astype(np.float32)
    return scaled


def _scaled(name: str, values: Floats) -> Floats:
    if name not in _SCALED or not len(values):
        return values
    scaled = deviations(values)
    if name in _SHAPES:
        np.clip(scaled, -_MAX_DEVIATION, _MAX_DEVIATION, out=scaled)
    return scaled.astype(np.float32, copy=False)


class _StaticSignals(NamedTuple):
    """Signals that do not depend on the question."""

    around: Ints
    """Rows of each turn, of two turns before it and of two after it."""
    norms: tuple[Floats, Floats, Floats]
    """BM25 length norms of pieces, of turns with their neighbours, and of episodes."""
    signals: dict[str, Floats]


_static_cache: WeakKeyDictionary[ScopeArrays, tuple[int, _StaticSignals]] = WeakKeyDictionary()


def _static_signals(arrays: ScopeArrays) -> _StaticSignals:
    """Return the signals that no question changes, computed again after turns were added."""
    pieces, static = _static_cache.get(arrays, (-1, None))
    if static is None or pieces != len(arrays.turn):
        around = _neighbours(arrays, np.arange(len(arrays), dtype=np.int32))
        words: Floats = arrays.words.all.astype(np.float32)
        of_turns = np.bincount(arrays.turn.all, weights=words, minlength=len(arrays))
        windows = np.append(of_turns, 0.0)[around].sum(axis=0)
        episodes = np.bincount(arrays.episode.all, weights=of_turns, minlength=arrays.episodes)
        norms = (_norm(words), _norm(windows), _norm(episodes))
        signals = {name: _scaled(name, values) for name, values in _turn_signals(arrays).items()}
        static = _StaticSignals(around, norms, signals)
        _static_cache[arrays] = (len(arrays.turn), static)
    return static


def _turn_signals(arrays: ScopeArrays) -> dict[str, Floats]:
    """Return the signals that depend on the turns alone."""
    turn, marks = arrays.turn.all, arrays.marks.all
    before = arrays.before.all
    answers = np.where(before >= 0, arrays.asks.all[before], False)
    return {
        "user": arrays.is_user.all[turn].astype(np.float32),
        "length": np.log1p(arrays.tokens.all).astype(np.float32),
        "pieces": np.log(np.maximum(arrays.pieces.all, 1)).astype(np.float32)[turn],
        "names": arrays.capitals.all.astype(np.float32),
        "answers": answers.astype(np.float32)[turn],
        "time": ((marks & TIME) > 0).astype(np.float32),
        "first_person": ((marks & FIRST_PERSON) > 0).astype(np.float32),
        "rule": ((marks & RULE) > 0).astype(np.float32),
    }


def _date_matches(arrays: ScopeArrays, question: RecallQuestion) -> Floats:
    """Return 1.0 for pieces said on, or mentioning, a day that the question asks about."""
    matches = np.zeros(len(arrays.turn), np.bool_)
    day, mentioned = arrays.day.all, arrays.dates.all
    for first, last in question.days:
        matches |= ((day >= first) & (day <= last))[arrays.turn.all]
        overlaps = (mentioned[:, 1] <= last) & (mentioned[:, 2] >= first)
        matches[mentioned[overlaps, 0]] = True
    return matches.astype(np.float32)


def _neighbours(arrays: ScopeArrays, turns: Ints) -> Ints:
    """Return these turns with two before and two after each in its session; some repeat."""
    before, after = np.append(arrays.before.all, -1), np.append(arrays.after.all, -1)
    # A row of -1 selects the appended last element, which points to itself.
    first, next_ = before[turns], after[turns]
    return np.stack((turns, first, before[first], next_, after[next_]))


def _neighbour_means(around: Ints, of_turns: Floats) -> Floats:
    """Return the mean over each turn and its neighbours."""
    is_turn = around >= 0
    values = np.append(of_turns, 0.0)[around]
    mean: Floats = ((values * is_turn).sum(axis=0) / is_turn.sum(axis=0)).astype(np.float32)
    return mean


def _word_signals(
    arrays: ScopeArrays, static: _StaticSignals, question: RecallQuestion
) -> dict[str, Floats]:
    """Return BM25 over pieces, over turns with their neighbours, and over episodes."""
    turn, pieces = arrays.turn.all, len(arrays.turn)
    norms = static.norms
    full = np.zeros(pieces, np.float32)
    around = np.zeros(len(arrays), np.float32)
    episodes = np.zeros(arrays.episodes, np.float32)
    holdings: list[tuple[float, Ints]] = []
    for term in question.full:
        holding, counts = arrays.postings.of(term)
        if not len(holding):
            continue
        worth = rarity(len(holding), pieces)
        full[holding] += USUAL.gains(worth, counts, norms[0][holding])
        if term not in question.about:
            continue
        holdings.append((worth, holding))
        turns, per_turn = _summed(turn[holding], counts, len(arrays))
        near = static.around[:, turns]
        repeated = np.tile(per_turn, len(near))
        near_turns, near_counts = _summed(near.ravel(), repeated, len(arrays))
        around[near_turns] += USUAL.gains(worth, near_counts, norms[1][near_turns])
        eras, era_counts = _summed(arrays.episode.all[turns], per_turn, arrays.episodes)
        episodes[eras] += USUAL.gains(worth, era_counts, norms[2][eras])
    return {
        "words": full,
        "words_around": around[turn],
        "words_of_episode": episodes[arrays.episode.all][turn],
        "rarest_words": _rarest(holdings, pieces),
    }


def _norm(lengths: np.ndarray[Any, Any]) -> Floats:
    """Return the BM25 length norms of texts."""
    mean = float(lengths.mean()) if len(lengths) else 1.0
    norm: Floats = USUAL.norms(lengths, max(mean, 1e-6)).astype(np.float32)
    return norm


def _summed(places: Ints, counts: Floats, size: int) -> tuple[Ints, Floats]:
    """Sum counts by place, each place once; places of -1 are left out."""
    sums = np.bincount(places + 1, weights=counts, minlength=size + 1)[1:]
    occupied = np.flatnonzero(sums)
    return occupied.astype(np.int32), sums[occupied].astype(np.float32)


def _rarest(holdings: list[tuple[float, Ints]], pieces: int) -> Floats:
    """Return the summed rarity of the question's rarest words in each piece."""
    sums = np.zeros(pieces, np.float32)
    for worth, holding in sorted(holdings, key=lambda each: -each[0])[:_RAREST]:
        sums[holding] += worth
    return sums
