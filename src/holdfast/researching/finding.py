"""Passages → findings, without a model: the best of each question, each said once.

finding: after ranking and places. A claim is a passage as it stands. Passages that say the same are
one finding with several places; those that say the same with another number or date contradict each
other, and are shown side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from holdfast.allocate import Confidence
from holdfast.condense.words import terms_of, words_of
from holdfast.researching.index import PassageIndex, names_in
from holdfast.researching.passages import sentences
from holdfast.researching.places import SourceContent
from holdfast.researching.ranking import rank
from holdfast.researching.records import Finding, Quote
from holdfast.summarise.measures import Figure, figure_at, plain

_MOST = 400
"""Findings of one question: more than any report has room for."""
_LEAST_SCORE = 0.03
"""Of the best passage's: what has less shares a common word with the question."""
_SAME = 0.85
"""The share of words in common from which two passages are one statement."""
_ABOUT_THE_SAME = 0.75
"""The share of the shorter sentence's words in the other, where two may contradict each other."""
_FEWEST_SHARED = 3
_MOST_COMPARED = 300
_GOOD = 0.5


class _Said(NamedTuple):
    """What a passage says, to be compared."""

    words: frozenset[int]
    names: frozenset[int]
    figures: frozenset[Figure]


def find(
    questions: Sequence[str],
    index: PassageIndex,
    contents: Sequence[SourceContent],
    *,
    first: int = 0,
    also: Iterable[str] = (),
    most_tokens: int = 1_000_000,
) -> list[Finding]:
    """The findings on each question, the best first; `first` is the number of the first question.

    At most so many tokens are taken, estimated by four characters each: no report holds more.
    """
    findings: list[Finding] = []
    taken: set[int] = set()
    room = 4 * most_tokens // max(len(questions), 1)
    names = list(also)
    for number, question in enumerate(questions, first):
        scores = rank(index, question, names)
        best = float(scores.max()) if len(scores) else 0.0
        left, chosen = room, 0
        for passage in np.argsort(-scores, kind="stable"):
            if left <= 0 or chosen >= _MOST or scores[passage] <= _LEAST_SCORE * best:
                break
            if int(passage) in taken:
                continue
            taken.add(int(passage))
            source, start, stop = index.passage(int(passage))
            quote = contents[source].quote(start, stop)
            left -= stop - start
            chosen += 1
            findings.append(
                Finding(
                    id="",
                    question=number,
                    claim=quote.text,
                    supporting=(quote,),
                    score=round(float(scores[passage]) / best, 4),
                )
            )
    return findings


def settle(findings: Sequence[Finding], voices: Mapping[str, str]) -> list[Finding]:
    """Findings without repetitions, with what contradicts each, how sure each is, and a number.

    `voices` names for a source the one that it repeats: two of one voice confirm nothing.
    """
    merged = _merged(findings)
    opposed = _contradictions(merged)
    return [
        msgspec.structs.replace(
            finding,
            id=f"F{number}",
            contradicting=opposed.get(number - 1, ()),
            confidence=_confidence(finding, opposed.get(number - 1, ()), voices),
        )
        for number, finding in enumerate(merged, 1)
    ]


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Equal statements as one; nearly equal ones too, if their figures and names are the same."""
    merged: list[Finding] = []
    by_words: dict[tuple[int, ...], int] = {}
    by_term: dict[int, list[int]] = {}
    said: list[_Said] = []
    for finding in findings:
        terms = terms_of(words_of(finding.claim))
        new = _said(finding.claim, terms)
        place = by_words.get(tuple(terms))
        if place is None:
            near = by_term.get(max(terms, default=0), [])[:20]  # equal texts share every word
            place = next((n for n in near if _is_same(new, said[n])), None)
        if place is not None:
            merged[place] = _with_quotes(merged[place], finding.supporting)
            continue
        by_words[tuple(terms)] = len(merged)
        by_term.setdefault(max(terms, default=0), []).append(len(merged))
        merged.append(finding)
        said.append(new)
    return merged


def _with_quotes(finding: Finding, quotes: Iterable[Quote]) -> Finding:
    places = {(quote.ref, quote.start, quote.stop): quote for quote in finding.supporting}
    for quote in quotes:
        places.setdefault((quote.ref, quote.start, quote.stop), quote)
    return msgspec.structs.replace(finding, supporting=tuple(places.values()))


def _said(text: str, terms: Sequence[int]) -> _Said:
    names = frozenset(terms_of(word for name in names_in(text) for word in words_of(name)))
    return _Said(frozenset(terms), names, frozenset(_figures(text)))


def _figures(text: str) -> list[Figure]:
    """The numbers of a text with their units."""
    shown = plain(text)
    figures = []
    at = 0
    for word in words_of(shown):
        at = shown.index(word, at)
        if word[:1].isdigit():
            figure = figure_at(shown, at, at + len(word))
            if figure is not None:
                figures.append(figure)
        at += len(word)
    return figures


def _is_same(one: _Said, other: _Said) -> bool:
    return one.figures == other.figures and _shared(one.words, other.words) >= _SAME


def _shared(one: frozenset[int], other: frozenset[int]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


# --- contradictions ------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    finding: int
    quote: Quote
    said: _Said
    other_words: frozenset[int]
    """Without its numbers."""


def _contradictions(findings: Sequence[Finding]) -> dict[int, tuple[Quote, ...]]:
    """For each finding, by its place, the quotes that state another number of the same thing."""
    spoken = [s for n, f in enumerate(findings) for s in _sentences(n, f)][:_MOST_COMPARED]
    opposed: dict[int, dict[tuple[str, int], Quote]] = {}
    for place, one in enumerate(spoken):
        for other in spoken[place + 1 :]:
            if one.quote.source != other.quote.source and _disagree(one, other):
                for here, there in ((one, other), (other, one)):
                    quotes = opposed.setdefault(here.finding, {})
                    quotes[there.quote.ref, there.quote.start] = there.quote
    return {place: tuple(quotes.values()) for place, quotes in opposed.items()}


def _sentences(number: int, finding: Finding) -> Iterable[_Sentence]:
    """The sentences of a finding that state a number, each with its own place."""
    quote = finding.supporting[0]
    for start, stop in sentences(quote.text, 0, len(quote.text)):
        text = quote.text[start:stop]
        if not any(map(str.isdigit, text)):
            continue
        said = _said(text, terms_of(words_of(text)))
        numbers = frozenset(terms_of(w for w in words_of(text) if any(map(str.isdigit, w))))
        yield _Sentence(number, quote, said, said.words - numbers)


def _disagree(one: _Sentence, other: _Sentence) -> bool:
    """Whether two sentences are about the same, and state different values in the same unit."""
    names, others = one.said.names, other.said.names
    if not (names <= others or others <= names):
        return False
    shared = len(one.other_words & other.other_words)
    shorter = min(len(one.other_words), len(other.other_words))
    if shared < max(_FEWEST_SHARED, _ABOUT_THE_SAME * shorter):
        return False
    mine, yours = one.said.figures - other.said.figures, other.said.figures - one.said.figures
    return any(figure.marks == against.marks for figure in mine for against in yours)


def _confidence(
    finding: Finding, opposed: Sequence[Quote], voices: Mapping[str, str]
) -> Confidence:
    if opposed:
        return Confidence.LOW
    heard = {voices.get(quote.source) or quote.source for quote in finding.supporting}
    if len(heard) > 1:
        return Confidence.CONFIRMED
    return Confidence.HIGH if finding.score >= _GOOD else Confidence.MEDIUM
