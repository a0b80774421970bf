"""Score how well each part of a conversation's texts matches the latest question.

It calls no model: it searches all parts for the words of the question, and JSON for the fields that
the question names. The same input has the same scores.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.condense.condenser import Passage
from holdfast.condense.fields import fields
from holdfast.condense.severity import alert_lines
from holdfast.condense.source import Source
from holdfast.document import find
from holdfast.document.pasted import documents_in
from holdfast.errors import ExpandError
from holdfast.search.passages import rank
from holdfast.trim.anchors import asks
from holdfast.trim.extracts import TextPart
from holdfast.wire import Message, Text

OBSERVATION = "Observation:"
"""First word of a user message with a tool's result, as text agents (ReAct, smolagents) send it."""
NEW_TASK = "\nNew task:\n"
"""smolagents writes the user's next question after the last result, in one message."""
_QUESTION_CHARACTERS = 2_000
_NEIGHBOUR = 0.5
"""Share of its relevance that a part lends its neighbours: a reply may share no word with its
question."""
_SHORT_TEXT = 1_200
"""Maximum characters of a short text, which is preferred to parts of long ones: users write short
facts, and long answers repeat them (BEAM, evidence in a quarter of the tokens: 0.82, not 0.60)."""
_NAMED = 1.0
_ALERT = 0.2
_SHORT = 0.2
_FIRST = 0.1
"""Scores added for a field that the question names, an error or warning, a short text, and the
first part of a long one. The part that matches the question best has a score of 1."""


class PartedText(NamedTuple):
    """A text and its parts."""

    text: str
    parts: Sequence[TextPart]
    context: str = ""
    """The call of a result, or the message before a text."""


def latest_question(messages: Sequence[Message]) -> Message | None:
    """Return the message with the latest question, which is not the result of a tool."""
    return next((m for m in reversed(messages) if asks(m) and not is_observation(m)), None)


def words_of(question: Message | None) -> str:
    """Return the words of a question, without the documents that were pasted beside it."""
    return "" if question is None else _words(question)[-_QUESTION_CHARACTERS:]


def is_observation(message: Message) -> bool:
    """Return whether a user message is the result of a tool, as text."""
    text = next((block.text for block in message.blocks if isinstance(block, Text)), "")
    return text.startswith(OBSERVATION) and NEW_TASK not in text


def worth_of_parts(texts: Sequence[PartedText], question: str) -> list[list[float]]:
    """Return the score of each part of each text; scores of parts that stay have no meaning."""
    relevance = _relevance(texts, question)
    worths: list[list[float]] = []
    at = 0
    for text in texts:
        stop = at + len(text.parts)
        if len(text.text) <= _SHORT_TEXT:
            worths.append([worth + _SHORT for worth in relevance[at:stop]])
        else:
            worths.append(relevance[at:stop])
            for part, bonus in _bonuses(text, question):
                worths[-1][part] += bonus
        at = stop
    return worths


def _relevance(texts: Sequence[PartedText], question: str) -> list[float]:
    """Return how well each part matches, from 0 to 1, raised by its neighbours."""
    passages = [_passage(text, part) for text in texts for part in text.parts]
    alone = [0.0] * len(passages)
    ranked = rank(question, passages)
    for answer in ranked:
        alone[answer.index] = answer.score / ranked[0].score
    lent = [_NEIGHBOUR * score for score in (0.0, *alone, 0.0)]
    return [max(score, lent[n], lent[n + 2]) for n, score in enumerate(alone)]


def _passage(text: PartedText, part: TextPart) -> Passage:
    if part.stays:  # the question itself would match best, and make all other matches look weak
        return Passage("", "")
    lines = (text.context, part.label, text.text[part.start : part.stop])
    return Passage("\n".join(filter(None, lines)), "")


def _bonuses(text: PartedText, question: str) -> Iterator[tuple[int, float]]:
    """Yield the index of parts and the score to add."""
    yield 0, _FIRST
    starts = [part.start for part in text.parts]
    source = Source(text.text.encode("utf-8", "replace"))
    lines = source.line_starts
    alerts = {bisect_right(starts, lines[number - 1]) - 1 for number in alert_lines(source)}
    yield from ((part, _ALERT) for part in sorted(alerts))
    for start, stop in _free_stretches(text.parts):
        named = _named_fields(text.text[start:stop], question)
        yield from ((bisect_right(starts, start + at) - 1, _NAMED) for at in named)


def _free_stretches(parts: Sequence[TextPart]) -> Iterator[tuple[int, int]]:
    """Yield the longest removable spans of a text: each may be one document."""
    start = stop = 0
    for part in (*parts, TextPart(-1, -1, stays=True)):
        if not part.stays and part.start == stop and start < stop:
            stop = part.stop
            continue
        if start < stop:
            yield start, stop
        start, stop = (0, 0) if part.stays else (part.start, part.stop)


def _named_fields(text: str, question: str) -> list[int]:
    """Return the offsets of the fields of a JSON document that the question names."""
    source = Source(text.encode("utf-8", "replace"))
    document = source.document
    places: list[int] = []
    if document is None:
        return places
    for field in fields(source, question):
        with suppress(ExpandError):  # the path of a key in a form that no path can name
            matches, _ = find(document, field.where)
            places.extend(match.node.start for match in matches if match.document is document)
    return places


def _words(message: Message) -> str:
    """Return the text of a message outside its documents."""
    words = []
    for block in message.blocks:
        if not isinstance(block, Text):
            continue
        text, at = _without_observation(block.text), 0
        for document in documents_in(text):
            words.append(text[at : document.start])
            at = document.stop
        words.append(text[at:])
    return "\n".join(filter(str.strip, words))


def _without_observation(text: str) -> str:
    return text.rpartition(NEW_TASK)[2] if text.startswith(OBSERVATION) else text
