"""Replace a long content by a short citation: its size, its important parts and its ref.

cite: after condense, expand and tokens, before fitting. Pure: the same input gives the same bytes.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.cite.citation import (
        BRIEF,
        Citation,
        CitePolicy,
        CitingRules,
        Excerpt,
        Fidelity,
        ToolRule,
        count,
        is_long,
    )
    from holdfast.cite.content_citation import cite
else:
    from holdfast._lazy import lazily

    # Loaded when it is used, because `import holdfast` names this package: see there.
    __getattr__ = lazily(
        __name__,
        {
            "BRIEF": "holdfast.cite.citation",
            "Citation": "holdfast.cite.citation",
            "CitePolicy": "holdfast.cite.citation",
            "CitingRules": "holdfast.cite.citation",
            "Excerpt": "holdfast.cite.citation",
            "Fidelity": "holdfast.cite.citation",
            "ToolRule": "holdfast.cite.citation",
            "cite": "holdfast.cite.content_citation",
            "count": "holdfast.cite.citation",
            "is_long": "holdfast.cite.citation",
        },
    )

__all__ = [
    "BRIEF",
    "Citation",
    "CitePolicy",
    "CitingRules",
    "Excerpt",
    "Fidelity",
    "ToolRule",
    "cite",
    "count",
    "is_long",
]
