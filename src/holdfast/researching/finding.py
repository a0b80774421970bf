"""Passages → findings, without a model: the best of each question, each said once.

finding: after ranking and places. A claim is a passage as it stands. Passages that say the same are
one finding with several places; those that say the same with another number or date contradict each
other, and are shown side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from holdfast.allocate import Confidence
from holdfast.researching.index import PassageIndex, names_in
from holdfast.researching.passages import sentences
from holdfast.researching.places import SourceContent
from holdfast.researching.ranking import rank
from holdfast.researching.records import Finding, Quote
from holdfast.search.words import terms_of, words_of
from holdfast.summarise.measures import Figure, ascii_digits, figure_at

_MOST = 400
"""Findings of one question: more than any report has room for."""
_LEAST_SCORE = 0.03
"""Of the best passage's: what has less shares a common word with the question."""
_LEAST_IN_LONG = 0.1
"""The same in a long source: there a passage speaks for itself, while in a short one it is borne by
what stands beside it (`He was born in 1911`). Else a log fills the report with its other lines."""
_LONG = 16
"""Passages from which a source is long."""
_SAME = 0.85
"""The share of words in common from which two passages are one statement."""
_ABOUT_THE_SAME = 0.75
"""The share of the shorter sentence's words in the other, where two may contradict each other."""
_FEWEST_SHARED = 3
_MOST_COMPARED = 300
_GOOD = 0.5


class _Stated(NamedTuple):
    """A number that a passage states, and the words on both sides of it."""

    figure: Figure
    before: str
    behind: str

    def is_of_same(self, other: _Stated) -> bool:
        """Whether both numbers are of the same thing: of one unit, or beside the same word.

        In a row of a table, or a line of a log, a number alone is of anything.
        """
        if self.figure.marks != other.figure.marks:
            return False
        return bool(
            self.figure.marks
            or (self.before and self.before == other.before)
            or (self.behind and self.behind == other.behind)
        )


class _Gist(NamedTuple):
    """What a passage says, to be compared."""

    words: frozenset[int]
    names: frozenset[int]
    stated: frozenset[_Stated]

    @property
    def figures(self) -> frozenset[Figure]:
        """The numbers alone."""
        return frozenset(each.figure for each in self.stated)


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
    quoted: set[int] = set()
    room_of_each = 4 * most_tokens // max(len(questions), 1)
    names = list(also)
    for number, question in enumerate(questions, first):
        scores = rank(index, question, names)
        best = float(scores.max()) if len(scores) else 0.0
        room, answers = room_of_each, 0
        for passage in np.argsort(-scores, kind="stable"):
            if room <= 0 or answers >= _MOST or scores[passage] <= _LEAST_SCORE * best:
                break
            source, start, stop = index.passage(int(passage))
            is_alone = index.passages_of[source] >= _LONG
            if int(passage) in quoted or (is_alone and scores[passage] <= _LEAST_IN_LONG * best):
                continue
            quoted.add(int(passage))
            quote = contents[source].quote(start, stop)
            room -= stop - start
            answers += 1
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

    They stand in the order of the questions, the best of each first.
    `voices` names for a source the one that it repeats: two of one voice confirm nothing.
    """
    distinct = sorted(_distinct(findings), key=lambda each: (each.question, -each.score))
    contradictions = _contradictions(distinct)
    return [
        msgspec.structs.replace(
            finding,
            id=f"F{number}",
            contradicting=contradictions.get(number - 1, ()),
            confidence=_confidence(finding, contradictions.get(number - 1, ()), voices),
        )
        for number, finding in enumerate(distinct, 1)
    ]


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """Equal statements as one; nearly equal ones too, if their figures and names are the same."""
    distinct: list[Finding] = []
    gists: list[_Gist] = []
    by_words: dict[tuple[int, ...], int] = {}
    by_term: dict[int, list[int]] = {}
    for finding in findings:
        terms = terms_of(words_of(finding.claim))
        gist = _gist(finding.claim, terms)
        place = by_words.get(tuple(terms))
        if place is None:
            near = by_term.get(max(terms, default=0), [])[:20]  # equal texts share every word
            place = next((n for n in near if _is_same(gist, gists[n])), None)
        if place is not None:
            distinct[place] = _united(distinct[place], finding)
            continue
        by_words[tuple(terms)] = len(distinct)
        by_term.setdefault(max(terms, default=0), []).append(len(distinct))
        distinct.append(finding)
        gists.append(gist)
    return distinct


def _united(finding: Finding, repetition: Finding) -> Finding:
    """One finding with the places of both, under the question that it answers better.

    What is the best answer to two stands under the later one, which may have no other.
    """
    places = {(quote.ref, quote.start, quote.stop): quote for quote in finding.supporting}
    for quote in repetition.supporting:
        places.setdefault((quote.ref, quote.start, quote.stop), quote)
    better = max(repetition, finding, key=lambda each: each.score)
    return msgspec.structs.replace(
        finding,
        supporting=tuple(places.values()),
        question=better.question,
        score=better.score,
    )


def _gist(text: str, terms: Sequence[int]) -> _Gist:
    names = frozenset(terms_of(word for name in names_in(text) for word in words_of(name)))
    return _Gist(frozenset(terms), names, frozenset(_stated(text)))


def _stated(text: str) -> Iterator[_Stated]:
    """The numbers of a text with their units and what is beside them."""
    in_plain = ascii_digits(text)
    words = words_of(in_plain)
    at = 0
    for place, word in enumerate(words):
        at = in_plain.index(word, at)
        if word[:1].isdigit():
            figure = figure_at(in_plain, at, at + len(word))
            if figure is not None:
                yield _Stated(figure, _word_at(words, place - 1), _word_at(words, place + 1))
        at += len(word)


def _word_at(words: Sequence[str], place: int) -> str:
    """A word in small letters; nothing where there is none, or a number."""
    word = words[place].lower() if 0 <= place < len(words) else ""
    return "" if any(map(str.isdigit, word)) else word


def _is_same(first: _Gist, second: _Gist) -> bool:
    return first.figures == second.figures and _common(first.words, second.words) >= _SAME


def _common(first: frozenset[int], second: frozenset[int]) -> float:
    """The share of all words that both have."""
    union = len(first | second)
    return len(first & second) / union if union else 0.0


# --- contradictions ------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    finding: int
    quote: Quote
    gist: _Gist
    other_words: frozenset[int]
    """Without its numbers."""


def _contradictions(findings: Sequence[Finding]) -> dict[int, tuple[Quote, ...]]:
    """For each finding, by its place, the quotes that state another number of the same thing."""
    stated = [s for n, f in enumerate(findings) for s in _sentences(n, f)][:_MOST_COMPARED]
    by_finding: dict[int, dict[tuple[str, int], Quote]] = {}
    for first, second in combinations(stated, 2):
        if first.quote.source != second.quote.source and _disagree(first, second):
            for here, there in ((first, second), (second, first)):
                quotes = by_finding.setdefault(here.finding, {})
                quotes[there.quote.ref, there.quote.start] = there.quote
    return {number: tuple(quotes.values()) for number, quotes in by_finding.items()}


def _sentences(number: int, finding: Finding) -> Iterable[_Sentence]:
    """The sentences of a finding that state a number, each with its own place."""
    quote = finding.supporting[0]
    for start, stop in sentences(quote.text, 0, len(quote.text)):
        text = quote.text[start:stop]
        if not any(map(str.isdigit, text)):
            continue
        gist = _gist(text, terms_of(words_of(text)))
        numbers = frozenset(terms_of(w for w in words_of(text) if any(map(str.isdigit, w))))
        yield _Sentence(number, quote, gist, gist.words - numbers)


def _disagree(first: _Sentence, second: _Sentence) -> bool:
    """Whether two sentences are about the same, and state different values in the same unit."""
    names, other_names = first.gist.names, second.gist.names
    if not (names <= other_names or other_names <= names):
        return False
    shared = len(first.other_words & second.other_words)
    shorter = min(len(first.other_words), len(second.other_words))
    if shared < max(_FEWEST_SHARED, _ABOUT_THE_SAME * shorter):
        return False
    return any(
        stated.is_of_same(other)
        for stated in first.gist.stated
        for other in second.gist.stated
        if stated.figure not in second.gist.figures and other.figure not in first.gist.figures
    )


def _confidence(
    finding: Finding, contradictions: Sequence[Quote], voices: Mapping[str, str]
) -> Confidence:
    if contradictions:
        return Confidence.LOW
    speakers = {voices.get(quote.source) or quote.source for quote in finding.supporting}
    if len(speakers) > 1:
        return Confidence.CONFIRMED
    return Confidence.HIGH if finding.score >= _GOOD else Confidence.MEDIUM
