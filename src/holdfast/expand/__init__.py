"""Open exactly the part of a stored content that is needed.

options → (rows, pattern, query and around, which each return a region) → pages → expander. tool,
excerpts and retrieval define the tools, and calls parses the calls of a model. Every ref that
cannot be opened is answered with the reason and the next step.
"""

from holdfast.expand.calls import parse_call
from holdfast.expand.expander import expand
from holdfast.expand.expansion import Expansion, missing, note_of, stale_line
from holdfast.expand.options import ExpandOptions, Slice
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
