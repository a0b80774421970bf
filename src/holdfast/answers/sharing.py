"""Which questions may have the answer of another at all: not personal ones, not those of today.

sharing: after reading, before cache. What it refuses is still answered from memory for an equal
request, whose client asked for that.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from holdfast.answers import lexicon
from holdfast.answers.reading import read

_PERSONAL = re2.compile(lexicon.PERSONAL)
_TIMELY = re2.compile(lexicon.TIMELY)


def unshared_because(prompt: str) -> str:
    """Why a question has an answer of its own; empty if it may share one."""
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
