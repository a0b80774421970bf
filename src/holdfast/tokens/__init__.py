"""Know the tokens of a request before it is sent.

provider_ids says which model a name means. vocabulary → families → render → tally → reading →
counting → calibration say how many tokens; prices → limits say how many there may be, and what
they cost.
"""

from holdfast.tokens.calibration import Calibration
from holdfast.tokens.counting import (
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
