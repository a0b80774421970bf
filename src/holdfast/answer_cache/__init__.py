"""The answer cache: answers for equal requests and, if switched on, for similar ones.

Order of imports: lexicon → reading → guards · sharing → records → vectors → cache → flights ·
signing · importing. A wrong answer is worse than none: anything that is not understood counts as a
difference.
"""

from holdfast.answer_cache.cache import Answers
from holdfast.answer_cache.flights import Flights
from holdfast.answer_cache.records import Answer, AnswerFilter, AnswerPolicy, GivenAnswer, Match
from holdfast.answer_cache.signing import SignedRequest, sign

__all__ = [
    "Answer",
    "AnswerFilter",
    "AnswerPolicy",
    "Answers",
    "Flights",
    "GivenAnswer",
    "Match",
    "SignedRequest",
    "sign",
]
