"""Find the names in a question: people, projects and other objects, as terms of facts.

A speaker is named by any word of their name, in any case. Other words count only if they are
written as a name: with a capital inside a sentence, in capitals, or with a digit: `Apollo`, `AWS`,
`db-3`. A question in capitals throughout has no such names.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Container
from typing import NamedTuple

from holdfast.search.stems import stem
from holdfast.search.words import fact_terms, fold, is_stop_word

ROLES = frozenset("user assistant system tool function developer model ai human".split())
"""Speakers without a name: everybody who writes to an assistant is its user."""
_NO_NAMES = ROLES | {stem(role) for role in ROLES}
_MOST_CHARACTERS = 4_000
"""Maximum characters of a question, half at each end: a pasted page is not the topic of a question.
"""
_MOST_OBJECTS = 16
# `re`, since each word ends with its run of letters and RE2 is slower for few words.
_WORD = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")
_SENTENCE_ENDS = frozenset('.!?:\n"“')
_CALENDAR = frozenset(
    name.lower()
    for names in (calendar.day_name, calendar.day_abbr, calendar.month_name, calendar.month_abbr)
    for name in names
)
"""Days and months name a time, not an object."""


class QuestionNames(NamedTuple):
    """The names in a question."""

    speakers: frozenset[str]
    """Terms of the names of speakers."""
    objects: tuple[tuple[str, ...], ...]
    """Other names, each as its terms."""


def find_names(text: str, speakers: Container[str]) -> QuestionNames:
    """Return the names in a question; `speakers` are the terms of all speakers' names."""
    if len(text) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    is_shouted = text.isupper()
    named: set[str] = set()
    objects: dict[tuple[str, ...], None] = {}
    end = 0
    for match in _WORD.finditer(text):
        gap, end = text[end : match.start()], match.end()
        starts_sentence = not match.start() or not _SENTENCE_ENDS.isdisjoint(gap)
        terms = tuple(fact_terms(match[0]))
        if spoken := {term for term in terms if term in speakers and term not in _NO_NAMES}:
            named |= spoken
        elif not is_shouted and _is_name(match[0], starts_sentence):
            objects[terms] = None
    return QuestionNames(frozenset(named), tuple(objects)[:_MOST_OBJECTS])


def _is_name(word: str, starts_sentence: bool) -> bool:
    """Return whether a word is written as a name."""
    folded = fold(word)
    if len(word) < 2 or folded in _CALENDAR or is_stop_word(folded):
        return False
    if any(character.isdigit() for character in word):
        return not word.isdigit()
    return word[1:] != word[1:].lower() or (word[0].isupper() and not starts_sentence)
