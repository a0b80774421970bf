"""Score each passage for a question, with a second hop over names.

`Which film has the younger director?` is answered in passages that share no word with it: the films
lead to names, the names to dates. So passages with names from the best passages score higher. The
weights were chosen on half of the multi-hop questions (docs/discussions/research.md).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from holdfast.researching.index import PassageIndex, find_names
from holdfast.search.arrays import Floats
from holdfast.search.words import terms_of, words_of

_OF_SOURCE = 0.3
"""Share of its source's score that a passage gets: `He was born in 1911` has no name."""
_OF_TITLE = 0.6
_OF_MEANING = 0.5
_OF_HOP = 0.6
_HOP_TITLE = 1.5
"""Factor for a name that is a source's title: that source is about it."""
_FIRST = 5
"""Number of best passages whose names are used."""
_FALL = 0.7


def rank(index: PassageIndex, question: str, also: Iterable[str] = ()) -> Floats:
    """Return a score of 0 or more per passage; `also` are additional names to search for."""
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
    return _add_hop(index, scores, set(weights))


def _add_hop(index: PassageIndex, scores: Floats, question_terms: set[int]) -> Floats:
    """Return the scores with the second hop over the names of the best passages."""
    best = np.argsort(-scores, kind="stable")[:_FIRST]
    if not len(best) or scores[best[0]] <= 0:
        return scores
    top = float(scores[best[0]])
    weights: dict[int, float] = {}
    for place, number in enumerate(best):
        weight = float(scores[number]) / top * _FALL**place
        title = index.titles[int(index.source[number])]
        for name in find_names(f"{title}. {index.text(int(number))}"):
            for term in terms_of(words_of(name)):
                if term not in question_terms:
                    weights[term] = max(weights.get(term, 0.0), weight)
    hop = index.words.scores(weights)
    hop += _OF_TITLE * _HOP_TITLE * index.of_titles.scores(weights)[index.source]
    highest = float(hop.max())
    return scores + _OF_HOP * top / highest * hop if highest > 0 else scores
