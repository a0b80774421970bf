"""How many tokens a citation may have: a share of its content by kind, within the room there is.

allowance: beside citation. Pure numbers: it knows no text and no window. Without room a citation
has its brief size, as under a tight window or the policy `always`.
"""

from __future__ import annotations

import math

BRIEF = 400
"""Tokens of a citation where there is no room for more: enough for what it is, how it ended, what
went wrong in it and the best answer."""
_MOST_SHARE = 1 / 3
"""Of the content, beyond the brief size: what would show more is better left whole."""
_GROWTH = {
    "code": 16.0,
    "test_output": 16.0,
    "stack_trace": 16.0,
    "diff": 16.0,
    "markdown": 16.0,
    "text": 16.0,
    "log": 10.0,
    "notion_page": 10.0,
    "web_search": 10.0,
}
_GROWTH_ELSE = 5.5
"""Tokens for each root of a token of the content, by kind. A root, because each further token shows
less of what is needed: of what recorded agents copied later from results of over 1,500 tokens, 26 %
stand in 400 tokens, 45 % in 800, 58 % in 1,600, and 63 % in half of the content. Files, runs and
pages are copied from; rows are looked up, and their answers stand in the brief size too: with 5.5
the median of 133 recorded results still has 95 % fewer tokens."""


def allowance(tokens: int, kind: str, room: int, most: int) -> int:
    """Most tokens of the citation of a content of so many tokens, with so much room for it."""
    wanted = min(tokens * _MOST_SHARE, math.sqrt(tokens) * _GROWTH.get(kind, _GROWTH_ELSE))
    return min(most, max(BRIEF, min(int(wanted), room)))
