"""How much each signal of a search counts, as data, and where the numbers come from.

weights: beside searching, which says what each signal is. The sum is linear, and every signal lies
between 0 and 1, so that scores of a directory of ten tools and of ten thousand mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WITH_VECTORS: Mapping[str, float] = MappingProxyType(
    {
        "whole": 5.0,  # BM25 over name, description, parameters and server as one text
        "parameters": 3.5,  # BM25 over the names and descriptions of the parameters
        "name": 1.5,  # the share of the tool's name that the query says
        "grams": 6.0,  # runs of four letters
        "meaning": 11.0,  # the vectors of what a tool says
        "server": 3.0,  # what the tools of its server gain on the whole
        "called": 14.0,  # the query is the tool's name, or ends or begins with it
        "used": 1.8,  # it was used before in this session and scope
    }
)
WITH_MINILM: Mapping[str, float] = MappingProxyType({**WITH_VECTORS, "meaning": 18.0})
"""Where MiniLM's vectors stand beside WordLlama's: both together are worth more."""
WORDS_ONLY: Mapping[str, float] = MappingProxyType(
    {name: weight for name, weight in WITH_VECTORS.items() if name != "meaning"}
)
FALLS_OFF = 0.2
"""Of the best score: what has less is not shown, however many were asked for."""
