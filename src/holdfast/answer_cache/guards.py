"""Guards: the features that two similar questions must share; each guard names the difference.

A vector encodes the topic of a text; the answer changes with a number, a name, a `not`, and with
the roles of the persons. A wrong answer is worse than none, so words that no guard understands
must be in both questions.

A guard also refuses questions that may not share answers at all: personal ones, and those about
today. They still get a cached answer for an equal request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import re2  # type: ignore[import-untyped]

from holdfast.answer_cache import lexicon
from holdfast.answer_cache.reading import Reading, read, stem

Parts = tuple[tuple[str, ...], ...]
Guard = Callable[[Reading, Reading], bool]
"""Whether two questions agree in it."""


def _question(one: Reading, other: Reading) -> bool:
    return one.asked == other.asked


def _numbers(one: Reading, other: Reading) -> bool:
    return one.numbers == other.numbers


def _units(one: Reading, other: Reading) -> bool:
    return one.units == other.units


def _dates(one: Reading, other: Reading) -> bool:
    return one.dates == other.dates and one.times == other.times


def _names(one: Reading, other: Reading) -> bool:
    """Return whether each name of one question is in the other, as a name or as a word."""
    return one.names <= {*other.names, *other.words} and other.names <= {*one.names, *one.words}


def _negations(one: Reading, other: Reading) -> bool:
    return one.negations == other.negations


def _antonyms(one: Reading, other: Reading) -> bool:
    own_words, right = _leftover(one, other)
    return not any(second in _opposites().get(first, ()) for first in own_words for second in right)


def _deciding(one: Reading, other: Reading) -> bool:
    return one.deciding == other.deciding


def _words(one: Reading, other: Reading) -> bool:
    """No word of one is without its like in the other."""
    own_words, right = _leftover(one, other)
    return not own_words and not right


def _persons(one: Reading, other: Reading) -> bool:
    """Return whether both ask about the same owner; how-to questions are about one's own."""
    own = {"own"} if one.asked in ("how", "why") else set()
    return one.persons - own == other.persons - own


def _signs(one: Reading, other: Reading) -> bool:
    return one.signs == other.signs


def _roles(one: Reading, other: Reading) -> bool:
    """Return whether the words have the same order, or only whole parts are moved.

    The first part is fixed, because the others refer to it. A part may also precede its noun: the
    structure of a society, a society's structure.
    """
    if _once(one.words) == _once(other.words) or _is_symmetric(one, other):
        return True
    if Counter(one.parts) == Counter(other.parts):
        return one.parts[0] == other.parts[0] or len(one.parts) > 2
    return _is_compound(one.parts, other.parts) or _is_compound(other.parts, one.parts)


def _is_compound(apart: Parts, joined: Parts) -> bool:
    """Return whether two consecutive parts are one part in the other question."""
    if len(apart) != len(joined) + 1:
        return False
    for at in range(len(joined)):
        first, second = apart[at : at + 2]
        if apart[:at] == joined[:at] and apart[at + 2 :] == joined[at + 1 :]:
            places = range(len(first))
            return any(joined[at] == first[:n] + second + first[n:] for n in places)
    return False


def _is_symmetric(one: Reading, other: Reading) -> bool:
    """Return whether the order does not matter: a difference between two, or one or the other."""
    joins = {"or"} & set(one.deciding) & set(other.deciding)
    return bool(joins) or ("differenc" in one.words and "differenc" in other.words)


def _once(words: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(words))


def _leftover(one: Reading, other: Reading) -> tuple[list[str], list[str]]:
    """Words of each that the other lacks."""
    own_words, right = Counter(set(one.words)), Counter(set(other.words))
    return list(own_words - right), list(right - own_words)


GUARDS: dict[str, Guard] = {
    "question word": _question,
    "numbers": _numbers,
    "units": _units,
    "dates": _dates,
    "names": _names,
    "negations": _negations,
    "antonyms": _antonyms,
    "small words": _deciding,
    "persons": _persons,
    "signs": _signs,
    "words": _words,
    "order of roles": _roles,
}
"""By what each looks at, in the order they are asked."""


def disagreement(one: Reading, other: Reading) -> str:
    """What two questions differ in; empty if one answer may serve both."""
    return next((name for name, agree in GUARDS.items() if not agree(one, other)), "")


@cache
def _opposites() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for first, *others in lexicon.antonyms():
        for opposite in others:
            opposites.setdefault(stem(first), set()).add(stem(opposite))
            opposites.setdefault(stem(opposite), set()).add(stem(first))
    return {word: frozenset(against) for word, against in opposites.items()}


_PERSONAL = re2.compile(lexicon.PERSONAL)
_TIMELY = re2.compile(lexicon.TIMELY)


def unshared_because(prompt: str) -> str:
    """Return the reason why a question cannot share answers; empty if it can."""
    question = read(prompt)
    if question is None:
        return "it is empty, or too long to be a question"
    if not question.words and not question.deciding:
        return "it holds no word of its own: what it means stands elsewhere"
    if _TIMELY.search(prompt):
        return "its answer depends on when it is asked"
    if _PERSONAL.search(prompt) and question.asked not in ("how", "why"):
        return "its answer depends on who asks"
    return ""
