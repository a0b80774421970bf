"""question: what is asked of facts, and what is found: values only.

question: beside words. It knows no index, so that who only adds facts need not load one.
"""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """What is looked for."""

    text: str
    session: str = ""
    """Said there; empty: anywhere."""
    tags: frozenset[str] = frozenset()
    limit: int = 12
    now: float = 0.0


class Hit(NamedTuple):
    """A fact that was found."""

    id: str
    score: float
    """What facts are ordered by: the question's names, similarity in steps, tags, recency."""
    similarity: float
    """From 0 to 1."""
    named: bool = False
    """It is about a person or thing that the question names."""


def spoken(text: str, said_by: str) -> str:
    """What a fact says, without who says it: names draw vectors together that are not alike."""
    return text.removeprefix(f"{said_by}: ") if said_by else text
