"""How well each piece of what was said answers a question: signals, and their weighted sum.

ranking: after arrays and question. It sees numbers alone. BM25 is reckoned three times, over the
piece, over its turn with two before and two behind, and over the whole episode: what answers often
stands beside what was asked, and shares no word with the question. Vectors likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.indexing import FIRST_PERSON, RULE, TIME, WISH
from holdfast.memory.question import Question
from holdfast.search.arrays import Floats, Ints
from holdfast.search.bm25 import USUAL, rarity
from holdfast.search.fusion import deviations, summed, weighted

_RAREST = 6
"""Words of a question by which `rarest_words` goes."""

_SCALED = frozenset(
    {
        *("words", "words_around", "words_of_episode"),
        *("rarest_words", "meaning", "meaning_around"),
        *("length", "pieces", "names"),
    }
)
"""Signals that are measured in deviations from their mean."""
_SHAPES = frozenset({"length", "pieces", "names"})
_MOST_SHAPE = 2.5
"""Deviations: among turns of one length a single longer one would win whatever was asked."""


class Ranked(NamedTuple):
    """A score for each piece, and what it is made of."""

    scores: Floats
    signals: Mapping[str, Floats]
    """What each signal adds to the scores."""


def rank(
    arrays: ScopeArrays,
    question: Question,
    vector: Floats | None,
    weights: Mapping[str, float],
) -> Ranked:
    """Score every piece."""
    signals = signals_of(arrays, question, vector)
    parts = weighted(signals, weights)
    return Ranked(summed(parts.values(), (len(arrays.turn),)), parts)


def signals_of(arrays: ScopeArrays, question: Question, vector: Floats | None) -> dict[str, Floats]:
    """Every signal of every piece."""
    turn = arrays.turn.all
    standing = _standing(arrays)
    signals = _word_signals(arrays, standing, question)
    if vector is not None and arrays.vectors is not None:
        meaning = arrays.cosines(vector)
        of_turns = np.bincount(turn, weights=meaning, minlength=len(arrays)) / np.maximum(
            arrays.pieces.all, 1
        )
        signals["meaning"] = of_turns.astype(np.float32)[turn]
        signals["meaning_around"] = _mean_around(standing.around, of_turns)[turn]
    speakers = np.zeros(len(arrays.names) + 1, np.float32)
    for name, number in arrays.names.items():
        speakers[number] = name in question.speakers
    signals["speaker"] = speakers[arrays.name.all][turn]
    signals["date"] = _dated(arrays, question)
    scaled = {name: _scaled(name, values) for name, values in signals.items()}
    scaled |= standing.signals
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
        np.clip(scaled, -_MOST_SHAPE, _MOST_SHAPE, out=scaled)
    return scaled.astype(np.float32, copy=False)


class _Standing(NamedTuple):
    """What no question changes."""

    around: Ints
    """Of each turn: itself, two before and two behind."""
    norms: tuple[Floats, Floats, Floats]
    """BM25's for pieces, turns with their neighbours, and episodes."""
    signals: dict[str, Floats]


_standings: WeakKeyDictionary[ScopeArrays, tuple[int, _Standing]] = WeakKeyDictionary()


def _standing(arrays: ScopeArrays) -> _Standing:
    """What no question changes, made again when turns were added."""
    pieces, standing = _standings.get(arrays, (-1, None))
    if standing is None or pieces != len(arrays.turn):
        around = _neighbours(arrays, np.arange(len(arrays), dtype=np.int32))
        words: Floats = arrays.words.all.astype(np.float32)
        of_turns = np.bincount(arrays.turn.all, weights=words, minlength=len(arrays))
        windows = np.append(of_turns, 0.0)[around].sum(axis=0)
        episodes = np.bincount(arrays.episode.all, weights=of_turns, minlength=arrays.episodes)
        norms = (_norm(words), _norm(windows), _norm(episodes))
        signals = {name: _scaled(name, values) for name, values in _static(arrays).items()}
        standing = _Standing(around, norms, signals)
        _standings[arrays] = (len(arrays.turn), standing)
    return standing


def _static(arrays: ScopeArrays) -> dict[str, Floats]:
    """Signals of the turns alone."""
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


def _dated(arrays: ScopeArrays, question: Question) -> Floats:
    """Whether a piece was said, or speaks of something, when the question asks about."""
    matches = np.zeros(len(arrays.turn), np.bool_)
    day, said = arrays.day.all, arrays.dates.all
    for first, last in question.days:
        matches |= ((day >= first) & (day <= last))[arrays.turn.all]
        meant = (said[:, 1] <= last) & (said[:, 2] >= first)
        matches[said[meant, 0]] = True
    return matches.astype(np.float32)


def _neighbours(arrays: ScopeArrays, turns: Ints) -> Ints:
    """These turns with two before and two behind each, of the same session; some twice."""
    before, behind = np.append(arrays.before.all, -1), np.append(arrays.behind.all, -1)
    first, next_ = before[turns], behind[turns]  # -1 is the last place, whose neighbour is itself
    return np.stack((turns, first, before[first], next_, behind[next_]))


def _mean_around(around: Ints, of_turns: Floats) -> Floats:
    """The mean over each turn and its neighbours."""
    there = around >= 0
    values = np.append(of_turns, 0.0)[around]
    mean: Floats = ((values * there).sum(axis=0) / there.sum(axis=0)).astype(np.float32)
    return mean


def _word_signals(
    arrays: ScopeArrays, standing: _Standing, question: Question
) -> dict[str, Floats]:
    """BM25 over pieces, over turns with their neighbours, and over episodes."""
    turn, pieces = arrays.turn.all, len(arrays.turn)
    norms = standing.norms
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
        near = standing.around[:, turns]
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
    """Return BM25's length penalty of texts."""
    mean = float(lengths.mean()) if len(lengths) else 1.0
    norm: Floats = USUAL.norms(lengths, max(mean, 1e-6)).astype(np.float32)
    return norm


def _summed(places: Ints, counts: Floats, size: int) -> tuple[Ints, Floats]:
    """Counts summed by place, each place once; what is at no place (-1) is left out."""
    sums = np.bincount(places + 1, weights=counts, minlength=size + 1)[1:]
    occupied = np.flatnonzero(sums)
    return occupied.astype(np.int32), sums[occupied].astype(np.float32)


def _rarest(holdings: list[tuple[float, Ints]], pieces: int) -> Floats:
    """The rarity of the question's rarest words that a piece holds, summed."""
    sums = np.zeros(pieces, np.float32)
    for worth, holding in sorted(holdings, key=lambda each: -each[0])[:_RAREST]:
        sums[holding] += worth
    return sums
