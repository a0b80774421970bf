"""Normalise words for searching: lower case, stems, and numeric ids.

A word is stored as a 32-bit hash of its stem: among 50,000 words a collision has a chance of one in
four, and a search only scans an array of numbers. In scripts without spaces, pairs of neighbouring
characters replace words.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

from holdfast.search.stems import stem

_STOP_WORDS = frozenset(
    """a about all also am an and any are as at be been being but by can could did do does for from
    get give had has have how i if in into is it its just know let like list look many may me much
    my need of on or our out please say said show so some tell than that the their them then there
    these they this those to us use was we were what when where which who whom whose why will with
    would you your find found contains contain there's what's it's""".split()
)
# `re`: each word ends where its run of letters does, and RE2 takes three times as long for short
# texts.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")  # noqa: RUF001 - as people write it
_WORD_OF_FACT = re.compile(r"[^\W_]+")
WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")
"""Japanese, Chinese, Korean, Thai and Lao."""
# Facts were stored and found with this wider range, which also lacks Thai and Lao: to share the
# other one would change which facts in these scripts are found.
_WITHOUT_SPACES_IN_FACTS = re.compile("[\u2e80-\U0010ffff]")
_MAX_LETTERS = 40
"""Maximum letters of a word: longer ones are data, whose start is as rare as the whole."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")


def fold(text: str) -> str:
    """Return a text in lower case, every character at the same place as before."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


def is_stop_word(word: str) -> bool:
    """Return whether a word in lower case is too common to be searched for."""
    return word in _STOP_WORDS


def parts_of(name: str) -> list[str]:
    """Return the words in an identifier: `maxTokens_2` is max, Tokens and 2."""
    return _PART.findall(name)


def pairs_of(word: str) -> list[str]:
    """Return each two neighbouring characters of a word in a script without spaces."""
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are written."""
    return _WORD.findall(text)


def terms_of(words: Iterable[str]) -> list[int]:
    """Return the numbers of words in their order, without stop words."""
    terms: list[int] = []
    for word in words:
        terms += _numbers(word[:_MAX_LETTERS].lower())
    return terms


def fact_terms(text: str) -> list[str]:
    """Return the stems of a fact's words, each once; stop words only if there is nothing else.

    A fact is one short sentence: a question about it may consist of stop words.
    """
    words = [fold(word) for word in _WORD_OF_FACT.findall(text)]
    telling = [word for word in words if not is_stop_word(word)]
    cut = (word[:_MAX_LETTERS] for word in telling or words)
    return list(dict.fromkeys(form for word in cut for form in _fact_forms(word)))


def number_of(form: str) -> int:
    """Return the number of a stem, or of any other run of letters."""
    return zlib.crc32(form.encode("utf-8", "replace"))


# Each cache takes 15 MB when it is full: words are cut first, or one might be a file in base64.
@lru_cache(maxsize=65_536)
def _numbers(word: str) -> tuple[int, ...]:
    word = word.removesuffix("'s").removesuffix("’s")  # noqa: RUF001 - as people write it
    return () if is_stop_word(word) else tuple(map(number_of, _forms(word, WITHOUT_SPACES)))


@lru_cache(maxsize=65_536)
def _fact_forms(word: str) -> tuple[str, ...]:
    return _forms(word, _WITHOUT_SPACES_IN_FACTS)


def _forms(word: str, without_spaces: re.Pattern[str]) -> tuple[str, ...]:
    if without_spaces.search(word):
        return tuple(pairs_of(word))
    return (word if word.isdigit() else stem(word),)
