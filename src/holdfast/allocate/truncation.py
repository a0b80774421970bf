"""Truncate a text to a number of tokens: the last way to shorten a content.

It splits no URL, id, number or word (condense/cutting.py), and reads only as much of a text as
could be shown.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.condense.cutting import MARK, shortened

Count = Callable[[str], int]
"""Returns the tokens of a text."""

_CHARACTERS_PER_TOKEN = 16
"""More characters per token than prose of any language has: no more of a text is read."""
_ROUNDS = 12


def truncate_to_tokens(text: str, most_tokens: int, count: Count) -> str:
    """Return the longest beginning found within a number of tokens, ending with `…`.

    Empty if not even the mark fits.
    """
    window = text[: most_tokens * _CHARACTERS_PER_TOKEN]
    if len(window) == len(text) and count(text) <= most_tokens:
        return text
    low, high = 0, len(window)
    best = MARK if count(MARK) <= most_tokens else ""
    # Tokens grow almost monotonically with characters: the search may miss the longest beginning,
    # but it never exceeds the limit.
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
