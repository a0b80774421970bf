"""The parts of a content that answer a question: the field, row or line it names, and the matches.

answers: after sections, before composition. A part that the question names exactly is shown alone.
Passages that match much less of the question than the best one are weaker matches, which a citation
shows under a separate heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from holdfast.cite.sections import AnswerLines
from holdfast.condense.condenser import Condenser, Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.fields import NamedFields, named_fields
from holdfast.condense.places import lies_within, without_path
from holdfast.condense.quoted_lines import MARKUP, QuotedLine, asks_for_line, quoted_line
from holdfast.condense.source import Source
from holdfast.condense.spans import lines_where
from holdfast.search.passages import rank
from holdfast.search.query import quotations

_BEST_PASSAGES = 12
_FIELD_CHARACTERS = 300
"""Fields after the best one are shown shorter, so that passages have room too."""
_NAMED = 100.0
"""The relevance of a field or a line that the question asks for by name."""
_BESIDE = 1.0
"""The relevance of the lines around a line that is quoted."""
_AROUND_CHARACTERS = 300
"""Of whole lines before a quoted line, and of those after it."""
_WEAK = 0.6
"""Share of the best score below which a passage is a weaker match."""


class RankedAnswers(NamedTuple):
    """The parts of a content that answer a question, each list best first."""

    best: list[AnswerLines]
    weaker: list[AnswerLines]
    is_exact: bool
    """Whether the question asks for one field, row or line, so that nothing else is needed."""


NO_ANSWERS = RankedAnswers([], [], is_exact=False)


def answers(source: Source, condenser: Condenser, question: str, wide: int) -> RankedAnswers:
    """Return the parts that answer a question, in excerpts of at most `wide` characters."""
    if not question.strip():
        return NO_ANSWERS
    fields = named_fields(source, question)
    best = _fields(fields, question, wide)
    if fields.is_exact:
        return RankedAnswers(best[:1], [], is_exact=True)
    passages = condenser.passages(source)
    ranked = [
        (passages[entry.index], entry.score) for entry in rank(question, passages)[:_BEST_PASSAGES]
    ]
    if source.table is not None and _names_first(question, [passage for passage, _ in ranked]):
        return RankedAnswers(_excerpts(ranked[:1], question, wide), [], is_exact=True)
    line = quoted_line(source, question) if condenser.kind not in MARKUP else None
    if line is not None:
        answer = AnswerLines(line.text, line.where, _NAMED)
        if asks_for_line(question):
            # Asked "Which line says …?", a model of 1.5 billion parameters answered "line 48".
            return RankedAnswers([answer._replace(hides_place=True)], [], is_exact=True)
        around = _around(source, line, [passage for passage, _ in ranked])
        other_matches = [entry for entry in ranked if not lies_within(line.where, entry[0].where)]
        weaker = [*around, *_excerpts(other_matches, question, wide)]
        return RankedAnswers([answer], weaker, is_exact=False)
    strong = [] if best else [entry for entry in ranked if entry[1] >= _WEAK * ranked[0][1]]
    return RankedAnswers(
        best or _excerpts(strong, question, wide),
        _excerpts(ranked[len(strong) :], question, wide),
        is_exact=False,
    )


def _fields(fields: NamedFields, question: str, wide: int) -> list[AnswerLines]:
    return [
        AnswerLines(
            excerpt(field.text, question, _FIELD_CHARACTERS if number else wide)[0],
            field.where,
            _NAMED,
        )
        for number, field in enumerate(fields.passages)
    ]


def _excerpts(
    ranked: Sequence[tuple[Passage, float]], question: str, wide: int
) -> list[AnswerLines]:
    return [
        AnswerLines(excerpt(without_path(passage), question, wide)[0], passage.where, score)
        for passage, score in ranked
    ]


def _names_first(question: str, ranked: Sequence[Passage]) -> bool:
    """Return whether the best row, and no other, has all that the question quotes."""
    quoted = quotations(question)
    holds_all = [all(text in passage.text for text in quoted) for passage in ranked]
    return bool(quoted) and holds_all[:1] == [True] and not any(holds_all[1:])


def _around(source: Source, line: QuotedLine, ranked: Sequence[Passage]) -> list[AnswerLines]:
    """Return the lines next to a quoted line in the passage that holds it, after and before it."""
    passage = next(
        (candidate for candidate in ranked if lies_within(line.where, candidate.where)), None
    )
    if passage is None or not passage.where.startswith("lines "):
        return []
    first, _, last = passage.where.removeprefix("lines ").partition("-")
    after = _nearest(source, range(line.number + 1, int(last) + 1))
    before = _nearest(source, range(line.number - 1, int(first) - 1, -1))
    spans = [(min(numbers), max(numbers)) for numbers in (after, before) if numbers]
    return [AnswerLines(source.lines(*span), lines_where(*span), _BESIDE) for span in spans]


def _nearest(source: Source, numbers: range) -> list[int]:
    """Return as many of these lines, from the first, as have few characters together."""
    ends = accumulate(len(source.lines(number, number)) + 1 for number in numbers)
    near = takewhile(lambda end: end <= _AROUND_CHARACTERS, ends)
    return [number for number, _ in zip(numbers, near, strict=False)]
