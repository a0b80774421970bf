"""A query for facts and its results.

This module does not import the index, so that code which only adds facts need not load numpy.
"""

from __future__ import annotations

from typing import NamedTuple


class FactQuery(NamedTuple):
    """A query for facts."""

    text: str
    session: str = ""
    """Limit to this session; empty for all."""
    tags: frozenset[str] = frozenset()
    limit: int = 12
    now: float = 0.0


class FactHit(NamedTuple):
    """A fact that matches a query."""

    id: str
    score: float
    """The ranking order: the question's names, similarity in steps, tags, recency."""
    similarity: float
    """From 0 to 1."""
    named: bool = False
    """Whether it is about a person or thing that the question names."""


def strip_speaker(text: str, said_by: str) -> str:
    """Return a fact without its speaker's name: names make vectors of unrelated texts similar."""
    return text.removeprefix(f"{said_by}: ") if said_by else text
