"""A question taken apart into the terms that an answer would hold.

question: before relevance. It knows no content. Words lose their common endings; identifiers
stand for themselves and for the words they are made of; what is quoted, numbers, ids, addresses
and URLs count only as they are.

The patterns are in `re`, for words of any script, and what stands around them: a question has at
most 8,000 characters. The parts of a name, which a content gives, are linear: each begins where the
one before ends.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

MOST_TERMS = 64
"""A question may be a whole page; its first and its last words say most."""
_MOST_CHARACTERS = 8000

ENDINGS = frozenset(
    "s es e ed d ing ings er ers ly ies y ied ion ions ation ations ure ures ment ments 's".split()
)
"""What may stand behind a stem in a word of the same meaning."""
_BY_LENGTH = sorted(ENDINGS, key=lambda ending: (-len(ending), ending))
_SHORTEST_STEM = 3

_STOP_WORDS = frozenset(
    """a about all also am an and any are as at be been being but by can could did do does for from
    get give had has have how i if in into is it its just know let like list look many may me much
    my need of on or our out please say said show so some tell than that the their them then there
    these they this those to us use was we were what when where which who whom whose why will with
    would you your find found contains contain there's what's it's""".split()
)
_QUOTED = re.compile(
    r"\"([^\"\n]{2,200})\"|`([^`\n]{1,200})`|(?<!\w)'([^'\n]{2,200})'(?!\w)|“([^”\n]{2,200})”"
)
_WHOLE = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://[^\s\"'<>]+"  # a URL
    r"|[\w.+-]{1,64}@[\w-]+\.[\w.-]+"  # an e-mail address
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)"  # a number
    r"|/?\w+(?:[-./:@#\\]+\w+)*"  # a word, an id, a path
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Term(msgspec.Struct, frozen=True):
    """Something to look for."""

    form: str
    """In lower case: a stem, or the whole of it if it counts only as it is."""
    weight: float
    exact: bool = False
    """It must stand between word ends, as it is; a stem may go on with an ending."""
    anywhere: bool = False
    """Word ends mean nothing: a script without spaces, or a quotation of signs."""


def fold(text: str) -> str:
    """Lower case, character for character: what is found stands at the same place in the text."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


@lru_cache(maxsize=256)
def terms(question: str) -> tuple[Term, ...]:
    """What an answer to the question would hold, each form once, in the order of the question."""
    found: dict[str, Term] = {}
    if len(question) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        question = f"{question[:half]} {question[-half:]}"
    for quoted in _QUOTED.finditer(question):
        text = fold(next(group for group in quoted.groups() if group is not None)).strip()
        if text:
            _add(found, Term(text, 4.0, exact=True, anywhere=not text.isalnum()))
    words = [match[0].strip(".:#@\\-") for match in _WHOLE.finditer(question)]
    # A question of stop words alone is taken at its word.
    for word in [word for word in words if fold(word) not in _STOP_WORDS] or words:
        _add_word(found, word)
    chosen = list(found.values())
    if len(chosen) > MOST_TERMS:
        chosen = chosen[: MOST_TERMS // 2] + chosen[-MOST_TERMS // 2 :]
    return tuple(chosen)


def quotations(question: str) -> list[str]:
    """Return what stands in quotes in a question, in its order."""
    matches = _QUOTED.findall(question[:_MOST_CHARACTERS])
    return [next(filter(None, groups)) for groups in matches]


def stem(word: str) -> str:
    """A word without its commonest ending."""
    for ending in _BY_LENGTH:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            shorter = word[: -len(ending)]
            doubled = len(shorter) > _SHORTEST_STEM and shorter[-1] == shorter[-2]
            return shorter[:-1] if doubled and ending in ("ed", "ing", "er", "ers") else shorter
    return word


def parts_of(name: str) -> list[str]:
    """The words that an identifier is made of: `maxTokens_2` is max, Tokens and 2."""
    return _PART.findall(name)


def is_stop_word(word: str) -> bool:
    """Whether a word in lower case says nothing of what is asked."""
    return word in _STOP_WORDS


def _add_word(found: dict[str, Term], word: str) -> None:
    low = fold(word)
    if not low:
        return
    if _WITHOUT_SPACES.search(low):
        for at in range(max(1, len(low) - 1)):
            _add(found, Term(low[at : at + 2], 1.0, anywhere=True))
        return
    if _NUMBER.fullmatch(low):
        for form in {low: None, low.replace(",", ""): None, _grouped(low): None}:
            _add(found, Term(form, 3.0, exact=True))
        return
    parts = _PART.findall(word)
    if len(parts) > 1:
        # An id, a path, an address or a name of code: the whole says most, its parts a little.
        _add(found, Term(low, 3.0, exact=True))
        for part in parts:
            if len(part) > 1 and fold(part) not in _STOP_WORDS:
                _add(found, _plain(fold(part), 0.6))
        return
    # A name in capitals is rarer than a word.
    named = len(word) > 1 and word[1:].lower() != word[1:]
    _add(found, _plain(low, 1.5 if named else 1.0))


def _plain(word: str, weight: float) -> Term:
    if len(word) <= _SHORTEST_STEM or word.isdigit():
        return Term(word, weight, exact=word.isdigit())
    return Term(stem(word), weight)


def _grouped(number: str) -> str:
    return f"{int(number):,}" if number.isdigit() and 4 <= len(number) <= 15 else number


def _add(found: dict[str, Term], term: Term) -> None:
    known = found.get(term.form)
    if known is None or known.weight < term.weight:
        found[term.form] = term
