"""What a request cost and what it would have cost untouched, from what the provider reports.

accounting: after trails, before session. Savings are net: of expansions, and of what the vendor's
cache would have saved on the untouched request too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.budget.usage import reported_usage, whole
from holdfast.store.records import TurnUsage
from holdfast.tokens.prices import Price, bundled

_WRAPPERS = ("usage", "usageMetadata")
_CACHED = (
    ("cache_read_input_tokens",),
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cachedContentTokenCount",),
    ("cacheReadInputTokens",),
)
_WRITTEN = (("cache_creation_input_tokens",), ("cacheWriteInputTokens",))


class Expanded(msgspec.Struct, frozen=True):
    """What the model opened while it answered."""

    calls: int = 0
    tokens: int = 0
    """Of what it was given."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What we counted of a request."""

    predicted: int
    """Input tokens as it was sent."""
    untouched: int
    """Input tokens as the client sent it."""
    untouched_before: int = 0
    """The same of the request before, which the vendor might have cached."""


def turn_usage(
    report: object, counted: Counted, expanded: Expanded, *, model: str, now: float
) -> TurnUsage:
    """The usage of a turn; where nothing is reported, what was predicted stands for the input."""
    said = reported_usage(report)
    read = said.input if said is not None and said.input else counted.predicted
    output = said.output if said is not None and said.output else 0
    cached = _first(report, _CACHED)
    written = _first(report, _WRITTEN)
    price = bundled().price(model, at=datetime.fromtimestamp(now, UTC)) if model else None
    cost = _cost(price, read, output, cached, written)
    # The untouched request would have been cached as far as it went out before.
    known = min(counted.untouched_before, counted.untouched) if cached else 0
    as_it_was = _cost(price, counted.untouched, output, known, 0)
    return TurnUsage(
        predicted=counted.predicted,
        untouched=counted.untouched,
        input=read,
        cached=cached,
        cache_written=written,
        output=output,
        expansions=expanded.calls,
        expansion_tokens=expanded.tokens,
        cost=cost,
        saved_cost=None if cost is None or as_it_was is None else as_it_was - cost,
    )


def _cost(price: Price | None, tokens: int, output: int, cached: int, written: int) -> float | None:
    if price is None:
        return None
    return float(
        price.cost(
            input_tokens=tokens,
            output_tokens=output,
            cache_read_tokens=cached,
            cache_write_tokens=written,
        )
    )


def _first(report: object, places: tuple[tuple[str, ...], ...]) -> int:
    for wrapper in _WRAPPERS:
        if isinstance(report, Mapping) and isinstance(report.get(wrapper), Mapping):
            report = report[wrapper]
    for place in places:
        value: Any = report
        for key in place:
            value = value.get(key) if isinstance(value, Mapping) else None
        if (found := whole(value)) is not None:
            return found
    return 0
