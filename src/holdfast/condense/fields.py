"""The fields of a JSON document that a question asks for.

A passage shows the text around an answer; a field is the answer alone. Fields are found by path, or
by the words of their keys and of neighbouring values: `city of Thigpen` leads through the row that
contains `Thigpen` to its `city`. Work is linear in the size of the document.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from holdfast.condense.addresses import MOST_FOUND, addressed, paths_in
from holdfast.condense.condenser import Passage
from holdfast.condense.field_words import (
    CONTAINERS,
    MOST_FIELDS,
    FieldMatch,
    Weigher,
    asks_only,
    depth_of,
    fields_by_words,
    worths,
)
from holdfast.condense.pieces import Place, path_of, scalar
from holdfast.condense.rows import brief
from holdfast.condense.source import Source
from holdfast.document import Document, DocumentWindow, find, windows
from holdfast.document import step as child_path
from holdfast.document.json_text import decoder
from holdfast.document.windows import WINDOW
from holdfast.errors import ExpandError
from holdfast.search.query import terms
from holdfast.search.words import fold

_LONGEST_EXACT = 300
"""Characters of a question that may ask for one field and no more: a longer text is a task, which
names fields in passing."""
_VALUE_CHARS = 600


class NamedFields(NamedTuple):
    """The fields that a question names, best first."""

    passages: list[Passage]
    is_exact: bool
    """Whether the first is the only one that the question asks for."""


_NONE = NamedFields([], is_exact=False)


def fields(source: Source, question: str) -> list[Passage]:
    """Return the fields that the question asks for, best first; none if it names none."""
    return named_fields(source, question).passages


def named_fields(source: Source, question: str) -> NamedFields:
    """Return the fields that the question asks for, and whether it asks for exactly one."""
    document = source.document
    if document is None or not isinstance(document.value, (dict, list)):
        return _NONE
    if not document.is_whole:
        by_path = _at_paths(document, question)
        passages, is_exact = (
            NamedFields(by_path, len(by_path) == 1) if by_path else _in_windows(document, question)
        )
    else:
        passages, is_exact = _in_value(document.value, question)
    is_exact = is_exact and len(question) <= _LONGEST_EXACT
    return NamedFields(passages[:MOST_FIELDS], is_exact)


def _in_value(value: Any, question: str) -> NamedFields:
    """Return the fields of a document that is held whole."""
    named = addressed(value, question)
    matches: list[FieldMatch] = []
    is_lone_key = all(depth_of(place) == 1 for place in named)
    if is_lone_key:  # it may be meant of something else, which more of the question leads to
        matches = fields_by_words(value, question)
    by_path = [FieldMatch(place, "", is_exact=False) for place in named]
    is_alone = not is_lone_key or any(asks_only(question, place[1]) for place in named)
    first = [] if is_alone else matches[:1]
    unique: dict[str, Passage] = {}
    for place, beside, _ in (*first, *by_path, *matches):
        passage = _passage(place, beside, path_of(place))
        unique.setdefault(passage.where, passage)
    passages = list(unique.values())
    if exact := _first_exact(matches):
        passages.sort(key=lambda passage: passage.where != exact)
        return NamedFields(passages, is_exact=True)
    is_exact = len(named) == 1 and (is_alone or passages[0].where == path_of(named[0]))
    return NamedFields(passages, is_exact)


def _first_exact(matches: list[FieldMatch]) -> str:
    return next((path_of(match.place) for match in matches if match.is_exact), "")


def _passage(place: Place, beside: str, path: str) -> Passage:
    _, step, holder = place
    shown_value = _shown(holder[step])
    return Passage(f"{shown_value} ({beside})" if beside else shown_value, path)


def _shown(value: Any) -> str:
    return brief(value, limit=_VALUE_CHARS) if isinstance(value, (dict, list)) else scalar(value)


# --- of a document that is read a part at a time --------------------------------------------------


def _at_paths(document: Document, question: str) -> list[Passage]:
    """The values at the paths that a question names, if each is one or a few."""
    passages: list[Passage] = []
    for path in paths_in(question):
        with suppress(ExpandError):  # words that are no path
            matches, _ = find(document, path)
            for match in matches if len(matches) <= MOST_FOUND else ():
                start, end = match.node.start, match.node.end
                if end - start <= WINDOW:
                    value = decoder.decode(match.document.text[start:end])
                    passages.append(Passage(_shown(value), match.node.path))
    return passages


def _in_windows(document: Document, question: str) -> NamedFields:
    """The fields of the window that has most of the question, if one has more than the others."""
    question_terms = terms(question)
    bits = []
    for window in windows(document):
        low = fold(window.written)
        bits.append(sum(1 << n for n, term in enumerate(question_terms) if term.form in low))
    weigh = Weigher(worths(question_terms, bits, len(bits)))
    scores = list(map(weigh, bits))
    best = max(scores, default=0.0)
    if scores.count(best) != 1:
        return _NONE
    window = next(islice(windows(document), scores.index(best), None))
    if not isinstance(window.value, CONTAINERS):
        return _NONE
    matches = fields_by_words(window.value, question)
    passages = [_passage(place, beside, _path_in(window, place)) for place, beside, _ in matches]
    return NamedFields(passages, any(match.is_exact for match in matches[:1]))


def _path_in(window: DocumentWindow, place: Place) -> str:
    """The path of a place of a window in its document."""
    above, steps = place, []
    while above:
        above, step, _ = above
        steps.append(step)
    if type(steps[-1]) is int:
        steps[-1] += window.first
    path = window.path
    for step in reversed(steps):
        path = child_path(path, step)
    return path
