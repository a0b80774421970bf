"""The weight of each signal of the tool search, as data with its source.

The score is a linear sum, and every signal is between 0 and 1, so that scores of a directory of ten
tools and of ten thousand mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WITH_VECTORS: Mapping[str, float] = MappingProxyType(
    {
        "whole": 5.0,  # BM25 over name, description, parameters and server as one text
        "parameters": 3.5,  # BM25 over the names and descriptions of the parameters
        "name": 1.5,  # the share of the tool's name that occurs in the query
        "grams": 6.0,  # letter 4-grams
        "meaning": 11.0,  # the vectors of a tool's texts
        "server": 3.0,  # the mean BM25 of its server's tools
        "called": 14.0,  # the query is the tool's name, or begins or ends with it
        "used": 1.8,  # used before in this session or scope
    }
)
WITH_MINILM: Mapping[str, float] = MappingProxyType({**WITH_VECTORS, "meaning": 18.0})
"""The weights with MiniLM, whose vectors are better than WordLlama's."""
WORDS_ONLY: Mapping[str, float] = MappingProxyType(
    {name: weight for name, weight in WITH_VECTORS.items() if name != "meaning"}
)
MIN_SHARE_OF_BEST = 0.2
"""Share of the best score below which a tool is not returned, even if fewer than `k` remain."""
