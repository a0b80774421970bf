"""The beginning of a text, up to so many tokens: the last way to make a content shorter.

truncating: beside choosing. It tears no URL, id, number or word (condense/cutting.py), marks that
the text goes on, and looks only at as much of a text as could be shown.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.condense.cutting import MARK, shortened

Count = Callable[[str], int]
"""Text → tokens."""

_CHARACTERS_PER_TOKEN = 16
"""More than prose of any language has: only so much is looked at."""
_ROUNDS = 12


def truncated(text: str, most_tokens: int, count: Count) -> str:
    """The longest beginning that was found of at most so many tokens, `…` behind it.

    Empty if not even the mark fits.
    """
    window = text[: most_tokens * _CHARACTERS_PER_TOKEN]
    if len(window) == len(text) and count(text) <= most_tokens:
        return text
    low, high = 0, len(window)
    best = MARK if count(MARK) <= most_tokens else ""
    # Tokens grow with characters, nearly: the search may miss the very longest, never the limit.
    for _ in range(_ROUNDS):
        middle = (low + high + 1) // 2
        if middle <= low:
            break
        beginning = shortened(window, middle, goes_on=True)
        if count(beginning) <= most_tokens:
            best, low = beginning, middle
        else:
            high = middle - 1
    return best
