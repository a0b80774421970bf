"""Know the tokens of a request before it is sent.

vocabulary → families → render → counting → calibration; provider_ids → limits → prices.
"""

from holdfast.tokens.counting import (
    Parts,
    TokenCount,
    TokenCounter,
    UnknownModelWarning,
    count,
    estimate_tokens,
    register_counter,
)

__all__ = [
    "Parts",
    "TokenCount",
    "TokenCounter",
    "UnknownModelWarning",
    "count",
    "estimate_tokens",
    "register_counter",
]
