"""words: a text as the words that facts are compared by: lower case, without endings, each once.

words: the first of facts; it knows none. Of scripts without spaces two neighbouring characters are
a word. What stop words say is left out, unless there is nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache

from holdfast.condense.question import fold, is_stop_word, stem

# `re`: each word ends where its run of letters does, and RE2 takes thrice as long for few words.
_WORD = re.compile(r"[^\W_]+")
_WITHOUT_SPACES = "\u2e80"
"""From here on stand scripts that put no space between words."""
_MOST_LETTERS = 40
"""Of one word: what is longer is data, and its beginning is as rare as the whole."""


def terms_of(text: str) -> list[str]:
    """The words of a text, each once, in its order."""
    words = [fold(word) for word in _WORD.findall(text)]
    telling = [word for word in words if not is_stop_word(word)]
    cut = (word[:_MOST_LETTERS] for word in telling or words)
    return list(dict.fromkeys(form for word in cut for form in _forms(word)))


# 13 MB when it is full: words are cut before they come here, or one might be a file in base64.
@lru_cache(maxsize=65_536)
def _forms(word: str) -> tuple[str, ...]:
    if max(word) >= _WITHOUT_SPACES:
        return tuple(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return (word if word.isdigit() else stem(word),)
