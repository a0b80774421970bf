"""Split a question into its sub-questions by rules.

An uncertain split is not made: it would lose the words that both halves share.
"""

from __future__ import annotations

import re

from holdfast.search.words import is_stop_word, words_of

MOST = 6
_LONGEST = 4_000
_ASKING = r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|did|does|do|can|should)"
# Sentences; list items; `… and how …`, where a second question begins.
_SENTENCES = re.compile(r"(?<=[?;])\s+|\n+|(?<=\.)\s+(?=[A-Z])")
_POINT = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_SECOND = re.compile(rf",? (?:and|or) (?={_ASKING} )", re.IGNORECASE)
_FEWEST_WORDS = 2
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|him|his|she|her)\b", re.IGNORECASE)


def sub_questions(question: str) -> tuple[str, ...]:
    """Return the distinct sub-questions in order; at least the question itself."""
    in_one_line = " ".join(question.split())
    parts: list[str] = []
    for sentence in _SENTENCES.split(question[:_LONGEST].strip()):
        pieces = _SECOND.split(" ".join(_POINT.sub("", sentence).split()))
        parts += pieces if all(map(_is_searchable, pieces)) else [" ".join(pieces)]
    candidates = dict.fromkeys(" ".join(part.split()) for part in parts)
    questions = [part for part in candidates if _is_searchable(part)]
    return tuple(questions[:MOST]) if len(questions) > 1 else (in_one_line,)


def refers_back(question: str) -> bool:
    """Return whether a question's topic is only a pronoun: `when was it rolled back?`."""
    return _PRONOUN.search(question) is not None


def _is_searchable(part: str) -> bool:
    """Return whether a part has enough words for a search."""
    return sum(not is_stop_word(word.lower()) for word in words_of(part)) >= _FEWEST_WORDS
