"""How much each passage has to do with a question, with a second hop over the names it leads to.

ranking: after index. `Which film has the younger director?` is answered in passages that share no
word with it: the films lead to the directors' names, the names to their dates. So the best passages
are asked which names they hold, and passages that hold these rise. The weights were chosen on half
of the multi-hop questions (docs/discussions/research.md has both halves).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from holdfast.researching.index import PassageIndex, names_in
from holdfast.search.arrays import Floats
from holdfast.search.words import terms_of, words_of

_OF_SOURCE = 0.3
"""What a passage has of its source's bearing: `He was born in 1911` names nobody."""
_OF_TITLE = 0.6
_OF_MEANING = 0.5
_OF_HOP = 0.6
_HOP_TITLE = 1.5
"""A name that is a source's title counts so much more: that is the source about it."""
_FIRST = 5
"""Passages whose names are asked for."""
_FALL = 0.7


def rank(index: PassageIndex, question: str, also: Iterable[str] = ()) -> Floats:
    """A score for each passage, 0 and above; `also` are names that are asked for with it."""
    weights = dict.fromkeys(terms_of(words_of(question)), 1.0)
    for name in also:
        for term in terms_of(words_of(name)):
            weights.setdefault(term, 0.5)
    scores = index.words.scores(weights)
    scores += _OF_SOURCE * index.of_sources.scores(weights)[index.source]
    scores += _OF_TITLE * index.of_titles.scores(weights)[index.source]
    near = index.meaning(question)
    if near is not None and len(scores):
        scores += _OF_MEANING * np.maximum(near, 0) * max(float(scores.max()), 1.0)
    return _hopped(index, scores, set(weights))


def _hopped(index: PassageIndex, scores: Floats, question_terms: set[int]) -> Floats:
    """The scores with what the names of the best passages add."""
    best = np.argsort(-scores, kind="stable")[:_FIRST]
    if not len(best) or scores[best[0]] <= 0:
        return scores
    top = float(scores[best[0]])
    weights: dict[int, float] = {}
    for place, number in enumerate(best):
        weight = float(scores[number]) / top * _FALL**place
        title = index.titles[int(index.source[number])]
        for name in names_in(f"{title}. {index.text(int(number))}"):
            for term in terms_of(words_of(name)):
                if term not in question_terms:
                    weights[term] = max(weights.get(term, 0.0), weight)
    hop = index.words.scores(weights)
    hop += _OF_TITLE * _HOP_TITLE * index.of_titles.scores(weights)[index.source]
    highest = float(hop.max())
    return scores + _OF_HOP * top / highest * hop if highest > 0 else scores
