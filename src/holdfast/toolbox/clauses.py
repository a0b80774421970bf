"""A request taken apart into the things that it asks for, each of which may need a tool.

clauses: beside reading; it knows no tools. `Find the train, then book it. Also tell Ann.` asks for
three. A request that asks for one thing is one clause: itself.
"""

from __future__ import annotations

import re

MOST = 8
_MOST_CHARACTERS = 4_000
"""Of a query: its beginning and its end say what is asked, and every clause costs a search."""
_LEAST_WORDS = 3
# Where one wish ends and another begins: at the end of a sentence, or at a word that says so. The
# alternatives begin with different characters, so that no place is tried twice.
_BETWEEN = re.compile(
    r"(?<![.!?;。！？；])[.!?;。！？；]++(?:\s++|$)|\n++|,\s++(?=(?:and|then|also|finally|lastly|after)\b)"  # noqa: RUF001 - other scripts' own
    r"|\b(?:and then|then|after that|afterwards|finally|lastly|also|next)\b,?"
    r"|[。！？；]",  # noqa: RUF001 - other scripts' own
    re.IGNORECASE,
)


def bounded(query: str) -> str:
    """A query as it is searched with: of a very long one, both ends."""
    if len(query) <= _MOST_CHARACTERS:
        return query
    half = _MOST_CHARACTERS // 2
    return f"{query[:half]} {query[-half:]}"


def clauses_of(query: str) -> list[str]:
    """What a query asks for, one by one; itself alone if that is one thing."""
    parts = [part.strip() for part in _BETWEEN.split(query) if part]
    clauses = [part for part in parts if len(part.split()) >= _LEAST_WORDS]
    return clauses[:MOST] if len(clauses) > 1 else [query]
