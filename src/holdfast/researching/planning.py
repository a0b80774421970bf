"""A question → the questions inside it, by rules.

planning: beside gathering. Whoever asks two things with one question wants both answered, and a
report that is grouped by them. What cannot be told apart safely stays together: a wrong cut loses
what the halves share.
"""

from __future__ import annotations

import re

from holdfast.search.words import is_stop_word, words_of

MOST = 6
_LONGEST = 4_000
_ASKING = r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|did|does|do|can|should)"
# Sentences; points of a list; `… and how …`, where a second question begins.
_SENTENCES = re.compile(r"(?<=[?;])\s+|\n+|(?<=\.)\s+(?=[A-Z])")
_POINT = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_SECOND = re.compile(rf",? (?:and|or) (?={_ASKING} )", re.IGNORECASE)
_FEWEST_WORDS = 2
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|him|his|she|her)\b", re.IGNORECASE)


def sub_questions(question: str) -> tuple[str, ...]:
    """The questions in a question, each once, in their order; at least the question itself."""
    in_one_line = " ".join(question.split())
    parts: list[str] = []
    for sentence in _SENTENCES.split(question[:_LONGEST].strip()):
        pieces = _SECOND.split(" ".join(_POINT.sub("", sentence).split()))
        parts += pieces if all(map(_asks, pieces)) else [" ".join(pieces)]
    candidates = dict.fromkeys(" ".join(part.split()) for part in parts)
    questions = [part for part in candidates if _asks(part)]
    return tuple(questions[:MOST]) if len(questions) > 1 else (in_one_line,)


def refers_back(question: str) -> bool:
    """Whether a question names what it is about only by a pronoun: `when was it rolled back?`."""
    return _PRONOUN.search(question) is not None


def _asks(part: str) -> bool:
    """Whether a part says enough to be searched for."""
    return sum(not is_stop_word(word.lower()) for word in words_of(part)) >= _FEWEST_WORDS
