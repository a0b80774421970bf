"""Turn passages into findings without a model: the best of each question, without repetitions.

A claim is a quoted passage. Passages that state the same are merged into one finding with several
places. Passages that state it with another number or date contradict each other and are shown
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from holdfast.allocate import Confidence
from holdfast.researching.index import PassageIndex, find_names
from holdfast.researching.passages import sentences
from holdfast.researching.places import SourceContent
from holdfast.researching.ranking import rank
from holdfast.researching.records import Finding, Quote
from holdfast.search.words import terms_of, words_of
from holdfast.summarise.measures import Figure, ascii_digits, figure_at

_MOST = 400
"""Maximum findings per question: more than any report has room for."""
_LEAST_SCORE = 0.03
"""Share of the best passage's score; with less, a passage only shares a common word."""
_LEAST_IN_LONG = 0.1
"""The same for a long source. A passage of a short one may need its neighbours (`He was born in
1911`); in a long one, such as a log, weak passages would fill the report with unrelated lines."""
_LONG = 16
"""Number of passages from which a source is long."""
_SAME = 0.85
"""Share of common words above which two passages state the same."""
_ABOUT_THE_SAME = 0.75
"""Share of the shorter sentence's words in the other one, above which they may contradict each
other."""
_FEWEST_SHARED = 3
_MOST_COMPARED = 300
_GOOD = 0.5


class _StatedNumber(NamedTuple):
    """A number in a passage, and the words before and after it."""

    figure: Figure
    before: str
    after: str

    def is_of_same(self, other: _StatedNumber) -> bool:
        """Return whether both numbers have the same unit, or the same word beside them.

        Without either, as in a table row or a log line, a number may measure anything.
        """
        if self.figure.marks != other.figure.marks:
            return False
        return bool(
            self.figure.marks
            or (self.before and self.before == other.before)
            or (self.after and self.after == other.after)
        )


class _Gist(NamedTuple):
    """The content of a passage, for comparisons."""

    words: frozenset[int]
    names: frozenset[int]
    stated: frozenset[_StatedNumber]

    @property
    def figures(self) -> frozenset[Figure]:
        """Return the numbers alone."""
        return frozenset(each.figure for each in self.stated)


def find_passages(
    questions: Sequence[str],
    index: PassageIndex,
    contents: Sequence[SourceContent],
    *,
    first: int = 0,
    also: Iterable[str] = (),
    most_tokens: int = 1_000_000,
) -> list[Finding]:
    """Return the findings on each question, best first; `first` is the first question's number.

    Findings of at most `most_tokens` tokens are returned, estimated at four characters per token:
    no report has room for more.
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


def number_findings(findings: Sequence[Finding], voices: Mapping[str, str]) -> list[Finding]:
    """Merge repeated findings, add contradictions and confidence, and number them.

    They are ordered by question, best first. `voices` maps a source to the one that it repeats: two
    sources with the same voice do not confirm each other.
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
    """Merge findings that are equal, or nearly equal with the same figures and names."""
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
            place = next((n for n in near if _states_same(gist, gists[n])), None)
        if place is not None:
            distinct[place] = _merge(distinct[place], finding)
            continue
        by_words[tuple(terms)] = len(distinct)
        by_term.setdefault(max(terms, default=0), []).append(len(distinct))
        distinct.append(finding)
        gists.append(gist)
    return distinct


def _merge(finding: Finding, repetition: Finding) -> Finding:
    """Return one finding with the places of both, under the question that it answers better.

    The best answer to two questions goes under the later one, which may have no other.
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
    names = frozenset(terms_of(word for name in find_names(text) for word in words_of(name)))
    return _Gist(frozenset(terms), names, frozenset(_stated(text)))


def _stated(text: str) -> Iterator[_StatedNumber]:
    """Yield the numbers of a text with their units and neighbouring words."""
    in_plain = ascii_digits(text)
    words = words_of(in_plain)
    at = 0
    for place, word in enumerate(words):
        at = in_plain.index(word, at)
        if word[:1].isdigit():
            figure = figure_at(in_plain, at, at + len(word))
            if figure is not None:
                yield _StatedNumber(figure, _word_at(words, place - 1), _word_at(words, place + 1))
        at += len(word)


def _word_at(words: Sequence[str], place: int) -> str:
    """Return a word in lower case; empty if there is none or it is a number."""
    word = words[place].lower() if 0 <= place < len(words) else ""
    return "" if any(map(str.isdigit, word)) else word


def _states_same(first: _Gist, second: _Gist) -> bool:
    return first.figures == second.figures and _common(first.words, second.words) >= _SAME


def _common(first: frozenset[int], second: frozenset[int]) -> float:
    """Return the share of all words that both have."""
    union = len(first | second)
    return len(first & second) / union if union else 0.0


# --- contradictions ------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    finding: int
    quote: Quote
    gist: _Gist
    other_words: frozenset[int]
    """The words without numbers."""


def _contradictions(findings: Sequence[Finding]) -> dict[int, tuple[Quote, ...]]:
    """Return, by finding index, the quotes that state another number for the same thing."""
    stated = [s for n, f in enumerate(findings) for s in _sentences(n, f)][:_MOST_COMPARED]
    by_finding: dict[int, dict[tuple[str, int], Quote]] = {}
    for first, second in combinations(stated, 2):
        if first.quote.source != second.quote.source and _disagree(first, second):
            for first_sentence, second_sentence in ((first, second), (second, first)):
                quotes = by_finding.setdefault(first_sentence.finding, {})
                quotes[second_sentence.quote.ref, second_sentence.quote.start] = (
                    second_sentence.quote
                )
    return {number: tuple(quotes.values()) for number, quotes in by_finding.items()}


def _sentences(number: int, finding: Finding) -> Iterable[_Sentence]:
    """Yield the sentences of a finding that state a number."""
    quote = finding.supporting[0]
    for start, stop in sentences(quote.text, 0, len(quote.text)):
        text = quote.text[start:stop]
        if not any(map(str.isdigit, text)):
            continue
        gist = _gist(text, terms_of(words_of(text)))
        numbers = frozenset(terms_of(w for w in words_of(text) if any(map(str.isdigit, w))))
        yield _Sentence(number, quote, gist, gist.words - numbers)


def _disagree(first: _Sentence, second: _Sentence) -> bool:
    """Return whether two sentences give one thing different values in the same unit."""
    names, other_names = first.gist.names, second.gist.names
    if not (names <= other_names or other_names <= names):
        return False
    shared = len(first.other_words & second.other_words)
    shorter = min(len(first.other_words), len(second.other_words))
    if shared < max(_FEWEST_SHARED, _ABOUT_THE_SAME * shorter):
        return False
    return any(
        stated.is_of_same(statement)
        for stated in first.gist.stated
        for statement in second.gist.stated
        if stated.figure not in second.gist.figures and statement.figure not in first.gist.figures
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
