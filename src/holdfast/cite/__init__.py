"""A short citation in the place of a long content: what it is, what matters, how to open it.

cite: after condense, expand and tokens, before fitting. Pure: the same input gives the same bytes.
"""

from holdfast.cite.allowance import BRIEF, allowance
from holdfast.cite.citation import (
    Citation,
    CitePolicy,
    CitingRules,
    Excerpt,
    Fidelity,
    ToolRule,
    count,
    is_long,
)
from holdfast.cite.citing import cite

__all__ = [
    "BRIEF",
    "Citation",
    "CitePolicy",
    "CitingRules",
    "Excerpt",
    "Fidelity",
    "ToolRule",
    "allowance",
    "cite",
    "count",
    "is_long",
]
