"""Open exactly the part of a stored content that is needed.

options → (lines, rows, pattern, query, around: each gives a region) → pages → reading. tool and
excerpts → retrieval define what a model calls, and calls reads it; misses say why a ref cannot be
opened.
"""

from holdfast.expand.calls import parse_call
from holdfast.expand.expansion import Expansion, missing, note_of, stale_line
from holdfast.expand.options import ExpandOptions, Slice
from holdfast.expand.reading import expand
from holdfast.expand.retrieval import parse_retrieval, retrieval_definition, retrieve
from holdfast.expand.tool import definition

__all__ = [
    "ExpandOptions",
    "Expansion",
    "Slice",
    "definition",
    "expand",
    "missing",
    "note_of",
    "parse_call",
    "parse_retrieval",
    "retrieval_definition",
    "retrieve",
    "stale_line",
]
