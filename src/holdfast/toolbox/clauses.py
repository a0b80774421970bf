"""Split a request into the actions that it asks for, each of which may need a tool.

`Find the train, then book it. Also tell Ann.` asks for three actions. A request for one action is
returned as it is.
"""

from __future__ import annotations

import re

MOST = 8
_MOST_CHARACTERS = 4_000
"""Maximum characters of a query: its beginning and end have the request, and each clause costs a
search."""
_LEAST_WORDS = 3
# The end of a sentence, or a word that begins another action. The alternatives begin with different
# characters, so that no position is tried twice.
_BETWEEN = re.compile(
    r"(?<![.!?;。！？；])[.!?;。！？；]++(?:\s++|$)|\n++|,\s++(?=(?:and|then|also|finally|lastly|after)\b)"  # noqa: RUF001 - other scripts' own
    r"|\b(?:and then|then|after that|afterwards|finally|lastly|also|next)\b,?"
    r"|[。！？；]",  # noqa: RUF001 - other scripts' own
    re.IGNORECASE,
)


def limit_length(query: str) -> str:
    """Return a query as it is searched; of a very long one, both ends."""
    if len(query) <= _MOST_CHARACTERS:
        return query
    half = _MOST_CHARACTERS // 2
    return f"{query[:half]} {query[-half:]}"


def split_request(query: str) -> list[str]:
    """Return the actions that a query asks for; the query itself if it asks for one."""
    parts = [part.strip() for part in _BETWEEN.split(query) if part]
    clauses = [part for part in parts if len(part.split()) >= _LEAST_WORDS]
    return clauses[:MOST] if len(clauses) > 1 else [query]
