"""Count the tokens of a request before it is sent, and know what a model accepts and charges.

`provider_ids` parses model names. `vocabulary`, `families`, `render`, `tally`, `request_reader`,
`counter` and `calibration` build on one another to count; `prices` and `limits` give costs and
maximum sizes.
"""

from holdfast.tokens.calibration import Calibration
from holdfast.tokens.counter import (
    Parts,
    TokenCount,
    TokenCounter,
    UnknownModelWarning,
    count,
    estimate_tokens,
    register_counter,
)
from holdfast.tokens.limits import (
    ModelContextLimits,
    ModelContextRegistry,
    get_effective_context,
)

__all__ = [
    "Calibration",
    "ModelContextLimits",
    "ModelContextRegistry",
    "Parts",
    "TokenCount",
    "TokenCounter",
    "UnknownModelWarning",
    "count",
    "estimate_tokens",
    "get_effective_context",
    "register_counter",
]
