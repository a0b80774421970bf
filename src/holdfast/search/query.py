"""Extract the search terms of a question.

Words lose their common endings; an identifier and the words in it are terms; quotations, numbers,
ids, addresses and URLs match only as written. The patterns use `re` for words of any script, on at
most 8,000 characters.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from holdfast.search.stems import SHORTEST_STEM, stem
from holdfast.search.words import WITHOUT_SPACES, fold, is_stop_word, pairs_of, parts_of

MAX_TERMS = 64
"""Maximum terms of a question. A question may be a whole page, so its first and last terms are
used.
"""
_MAX_CHARACTERS = 8000

_QUOTED = re.compile(
    r"\"([^\"\n]{2,200})\"|`([^`\n]{1,200})`|(?<!\w)'([^'\n]{2,200})'(?!\w)|“([^”\n]{2,200})”"
)
_WHOLE = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://[^\s\"'<>]+"  # a URL
    r"|[\w.+-]{1,64}@[\w-]+\.[\w.-]+"  # an e-mail address
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)"  # a number
    r"|/?\w+(?:[-./:@#\\]+\w+)*"  # a word, an id, a path
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Term(msgspec.Struct, frozen=True):
    """A term to search for."""

    form: str
    """Lower-case stem, or the term as written if `exact`."""
    weight: float
    exact: bool = False
    """Whether the match must end at a word boundary; a stem may be followed by an ending."""
    anywhere: bool = False
    """Whether word boundaries are ignored: for scripts without spaces and quoted symbols."""


@lru_cache(maxsize=256)
def terms(question: str) -> tuple[Term, ...]:
    """Return the terms of a question, each form once, in their order."""
    by_form: dict[str, Term] = {}
    if len(question) > _MAX_CHARACTERS:
        half = _MAX_CHARACTERS // 2
        question = f"{question[:half]} {question[-half:]}"
    for quoted in _QUOTED.finditer(question):
        text = fold(next(group for group in quoted.groups() if group is not None)).strip()
        if text:
            _add(by_form, Term(text, 4.0, exact=True, anywhere=not text.isalnum()))
    words = [match[0].strip(".:#@\\-") for match in _WHOLE.finditer(question)]
    # A question of stop words alone is about them.
    for word in [word for word in words if not is_stop_word(fold(word))] or words:
        _add_word(by_form, word)
    chosen = list(by_form.values())
    if len(chosen) > MAX_TERMS:
        chosen = chosen[: MAX_TERMS // 2] + chosen[-MAX_TERMS // 2 :]
    return tuple(chosen)


def quotations(question: str) -> list[str]:
    """Return the quoted parts of a question, in their order."""
    matches = _QUOTED.findall(question[:_MAX_CHARACTERS])
    return [next(filter(None, groups)) for groups in matches]


def _add_word(by_form: dict[str, Term], word: str) -> None:
    low = fold(word)
    if not low:
        return
    if WITHOUT_SPACES.search(low):
        for pair in pairs_of(low):
            _add(by_form, Term(pair, 1.0, anywhere=True))
        return
    if _NUMBER.fullmatch(low):
        for form in {low: None, low.replace(",", ""): None, _grouped(low): None}:
            _add(by_form, Term(form, 3.0, exact=True))
        return
    parts = parts_of(word)
    if len(parts) > 1:
        # An id, a path, an address or a name in code matters as it is written, its parts less.
        _add(by_form, Term(low, 3.0, exact=True))
        for part in parts:
            if len(part) > 1 and not is_stop_word(fold(part)):
                _add(by_form, _plain(fold(part), 0.6))
        return
    # A name in capitals is rarer than a word.
    is_name = len(word) > 1 and word[1:].lower() != word[1:]
    _add(by_form, _plain(low, 1.5 if is_name else 1.0))


def _plain(word: str, weight: float) -> Term:
    if len(word) <= SHORTEST_STEM or word.isdigit():
        return Term(word, weight, exact=word.isdigit())
    return Term(stem(word), weight)


def _grouped(number: str) -> str:
    return f"{int(number):,}" if number.isdigit() and 4 <= len(number) <= 15 else number


def _add(by_form: dict[str, Term], term: Term) -> None:
    earlier = by_form.get(term.form)
    if earlier is None or earlier.weight < term.weight:
        by_form[term.form] = term
