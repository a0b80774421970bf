"""Words as searches compare them: lower case, without endings, as numbers.

words: after question; memory and toolbox search with it, and it knows neither turns nor tools. A
word is kept as a 32-bit number made of its stem: 50,000 words share one with a chance of a quarter,
and an array of numbers is all that a search has to look at.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

from holdfast.condense.question import is_stop_word, stem

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")  # noqa: RUF001 - as people write it
# Scripts without spaces: two neighbouring characters are the least that means something.
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]+")
_MOST_LETTERS = 40
"""Of one word: what is longer is data, and its beginning is as rare as the whole."""


def words_of(text: str) -> list[str]:
    """The words of a text as they stand."""
    return _WORD.findall(text)


def terms_of(words: Iterable[str]) -> list[int]:
    """Words as numbers; those that say nothing are left out."""
    terms: list[int] = []
    for word in words:
        terms += _terms(word[:_MOST_LETTERS].lower())
    return terms


# 15 MB when it is full; words are cut before they come here.
@lru_cache(maxsize=65_536)
def _terms(word: str) -> tuple[int, ...]:
    word = word.removesuffix("'s").removesuffix("’s")  # noqa: RUF001 - as people write it
    if is_stop_word(word):
        return ()
    if _WITHOUT_SPACES.search(word):
        return tuple(_number(word[at : at + 2]) for at in range(max(1, len(word) - 1)))
    return (_number(word if word.isdigit() else stem(word)),)


def _number(form: str) -> int:
    return zlib.crc32(form.encode("utf-8", "replace"))
