"""Answers that may be given again: for an equal request, and where it is switched on a like one.

lexicon → reading → guards · sharing → records → vectors → cache → flights · signing · importing,
each using only what stands before it. A wrong answer is worse than none: what is not understood is
taken for a difference.
"""

from holdfast.answer_cache.cache import Answers
from holdfast.answer_cache.flights import Flights
from holdfast.answer_cache.records import Answer, AnswerFilter, AnswerPolicy, GivenAnswer, Match
from holdfast.answer_cache.signing import Signed, sign

__all__ = [
    "Answer",
    "AnswerFilter",
    "AnswerPolicy",
    "Answers",
    "Flights",
    "GivenAnswer",
    "Match",
    "Signed",
    "sign",
]
