"""A question → the questions inside it, by rules.

planning: beside gathering. Whoever asks two things with one question wants both answered, and a
report that is grouped by them. What cannot be told apart safely stays together: a wrong cut loses
what the halves share.
"""

from __future__ import annotations

import re

from holdfast.condense.question import is_stop_word
from holdfast.condense.words import words_of

MOST = 6
_LONGEST = 4_000
_ASKING = r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|did|does|do|can|should)"
# Sentences; points of a list; `… and how …`, where a second question begins.
_SENTENCES = re.compile(r"(?<=[?;])\s+|\n+|(?<=\.)\s+(?=[A-Z])")
_POINT = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_SECOND = re.compile(rf",? (?:and|or) (?={_ASKING} )", re.IGNORECASE)
_FEWEST_WORDS = 2


def sub_questions(question: str) -> tuple[str, ...]:
    """The questions in a question, each once, in their order; at least the question itself."""
    whole = " ".join(question.split())
    parts: list[str] = []
    for sentence in _SENTENCES.split(question[:_LONGEST].strip()):
        pieces = _SECOND.split(" ".join(_POINT.sub("", sentence).split()))
        parts += pieces if all(map(_asks, pieces)) else [" ".join(pieces)]
    asked = [" ".join(part.split()) for part in parts]
    chosen = [part for part in dict.fromkeys(asked) if _asks(part)]
    return tuple(chosen[:MOST]) if len(chosen) > 1 else (whole,)


def _asks(part: str) -> bool:
    """Whether a part says enough to be searched for."""
    return sum(not is_stop_word(word.lower()) for word in words_of(part)) >= _FEWEST_WORDS
