"""What a request cost and what it would have cost untouched, from what the provider reports.

accounting: after trails and vendor_cache, before session. Savings are net: of every call that an
answer took, and of what the vendor's cache would have saved on the untouched request too. A call
that failed costs what was reported of it and saves nothing; nobody bills the offline model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.budget.usage import Usage, reported_usage, whole
from holdfast.engine.vendor_cache import Beginning, Bill, Life, policy_of, untouched_bill
from holdfast.errors import SettingsError
from holdfast.fitting.draft import FrameEdit
from holdfast.store.records import TurnUsage
from holdfast.tokens.prices import Price, bundled

CLIENT_LEFT = 499
"""No provider answers with it: it stands where a client did not wait for its answer."""

_WRAPPERS = ("usage", "usageMetadata", "usage_metadata")
_CACHED = (
    ("cache_read_input_tokens",),
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cachedContentTokenCount",),
    ("cached_content_token_count",),
    ("cacheReadInputTokens",),
)
_WRITTEN = (
    ("cache_creation_input_tokens",),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("cacheWriteInputTokens",),
)
_WRITTEN_FOR_AN_HOUR = (("cache_creation", "ephemeral_1h_input_tokens"),)


class Expanded(msgspec.Struct, frozen=True):
    """What the model opened while it answered."""

    calls: int = 0
    """Of our tool."""
    tokens: int = 0
    """Of what it was given."""
    rounds: int = 0
    """How often the prompt was sent again, with what was opened behind it."""


class ToolUse(msgspec.Struct, frozen=True):
    """How an answer used tools."""

    calls: int = 0
    """Of the client's tools."""
    lazy: int = 0
    """Of these, calls of tools whose schemas were set aside."""
    searches: int = 0
    """Of ours, for such tools."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What we counted of a request."""

    predicted: int
    """Input tokens as it was sent."""
    untouched: int
    """Input tokens as the client sent it."""
    untouched_before: int = 0
    """Of these, at their beginning, those that the request before began with too."""
    sent_before: int | None = None
    """The same of what was sent: what the vendor's cache can hold of it. None: not known."""
    idle_seconds: float = 0.0
    """Since the request before; caches forget."""
    cache_lives: frozenset[Life] = frozenset()
    """For how long the client asks the vendor to cache it: see `vendor_cache.cache_lives`."""
    billed: bool = True
    """Someone bills it: the model is not the offline one."""


def remembered_usage(
    untouched: int, output: int, *, model: str, now: float, billed: bool
) -> TurnUsage:
    """The usage of a turn that was answered from memory: all of it was saved.

    `output` is what the answer took when it was given first.
    """
    price = price_of(model, now) if billed else None
    spared = None if price is None else cost_of(price, Bill(input=untouched, calls=1), output)
    return TurnUsage(
        untouched=untouched,
        cost=0.0,
        saved_cost=None if spared is None else float(spared),
        answered=True,
    )


def with_tools(usage: TurnUsage, tools: ToolUse, edits: Iterable[FrameEdit]) -> TurnUsage:
    """The usage of a turn that was answered, with how it used tools; the edits are its frame's."""
    if usage.failed:
        return usage
    deferred = (each.edit for each in edits if each.edit.action == "defer")
    return msgspec.structs.replace(
        usage,
        lazy_saved=sum(max(edit.from_tokens - edit.to_tokens, 0) for edit in deferred),
        tool_searches=tools.searches,
        tool_calls=tools.calls,
        lazy_calls=tools.lazy,
    )


def turn_usage(
    report: object,
    counted: Counted,
    expanded: Expanded,
    *,
    model: str,
    now: float,
    status: int = 200,
) -> TurnUsage:
    """The usage of a turn; where nothing is reported, what was predicted stands for the input."""
    usage = reported_usage(report)
    # The provider did answer a client that left, and bills what it read.
    failed = status >= 400 and status != CLIENT_LEFT
    bill = _reported(usage, report, expanded) or _predicted(counted, expanded, failed=failed)
    unchanged = bill.calls == 1 and counted.predicted == counted.untouched
    untouched = _as_vendors_count(counted, bill)
    counted = msgspec.structs.replace(counted, untouched=untouched)
    output = usage.output if usage is not None and usage.output else 0
    price = price_of(model, now)
    cost: Decimal | None = None
    saved_cost: Decimal | None = None
    if not counted.billed:
        cost = Decimal(0)
    elif price is not None:
        cost = cost_of(price, bill, output)
        instead = bill if unchanged else _untouched(price, bill, counted)
        saved_cost = -cost if failed else cost_of(price, instead, output) - cost
    return TurnUsage(
        predicted=0 if failed else counted.predicted,
        untouched=0 if failed else untouched,
        input=bill.input,
        cached=bill.cached,
        cache_written=bill.written,
        output=output,
        expansions=expanded.calls,
        expansion_tokens=expanded.tokens,
        cost=None if cost is None else float(cost),
        saved_cost=None if saved_cost is None else float(saved_cost),
        failed=failed,
    )


def _as_vendors_count(counted: Counted, bill: Bill) -> int:
    """The untouched request as the vendor would have counted it: a miscount is no saving.

    What we counted wrong of the sent request was as wrong before, and what a provider holds and
    bills is in both. So what was saved is what the client was told before the answer came. Over
    several calls the error cannot be told from what was opened in them, and our own count stands.
    """
    if bill.calls != 1 or not bill.reported:
        return counted.untouched
    return max(0, bill.input + counted.untouched - counted.predicted)


def _reported(usage: Usage | None, report: object, expanded: Expanded) -> Bill | None:
    if usage is None or not usage.input:
        return None
    # Parts are never more than the whole, whatever a provider says.
    cached = min(_first(report, _CACHED), usage.input)
    written = min(_first(report, _WRITTEN), usage.input - cached)
    return Bill(
        input=usage.input,
        cached=cached,
        written=written,
        written_hour=min(_first(report, _WRITTEN_FOR_AN_HOUR), written),
        calls=expanded.rounds + 1,
    )


def _predicted(counted: Counted, expanded: Expanded, *, failed: bool) -> Bill:
    """The input of the calls that were answered: the prompt each time, and what was opened.

    What is opened in a round is read in every later call: on average in half of all calls.
    """
    calls = expanded.rounds + (not failed)
    opened = expanded.tokens * calls // 2 if calls > 1 else 0
    return Bill(input=counted.predicted * calls + opened, calls=calls, reported=False)


def price_of(model: str, now: float) -> Price | None:
    """What a model costs; None where its name, which is the client's, is no name at all."""
    with suppress(SettingsError):
        return bundled().price(model, at=datetime.fromtimestamp(now, UTC))
    return None


def _untouched(price: Price, sent: Bill, counted: Counted) -> Bill:
    before = Beginning(
        untouched=min(counted.untouched_before, counted.untouched),
        sent=counted.sent_before,
        idle_seconds=counted.idle_seconds,
    )
    lives = counted.cache_lives
    return untouched_bill(counted.untouched, before, sent, policy_of(price), lives)


def cost_of(price: Price, bill: Bill, output: int) -> Decimal:
    """What calls cost: each by itself, as prices may rise with the size of a request."""
    if not bill.input and not output:
        return Decimal(0)
    calls = max(1, bill.calls)
    plain = bill.input - bill.cached - bill.written
    sides = (plain, bill.cached, bill.written - bill.written_hour, bill.written_hour, output)
    total = Decimal(0)
    for n in range(calls):
        new, cached, written, for_an_hour, said = (_part(side, n, calls) for side in sides)
        total += price.cost(
            input_tokens=new + cached + written + for_an_hour,
            output_tokens=said,
            cache_read_tokens=cached,
            cache_write_tokens=written,
            cache_write_hour_tokens=for_an_hour,
        )
    return total


def _part(total: int, n: int, of: int) -> int:
    """The n-th of equal parts that add up to the total."""
    return total // of + (n < total % of)


def _first(report: object, places: tuple[tuple[str, ...], ...]) -> int:
    """The first count that is there; reports are read by their keys or their attributes."""
    for wrapper in _WRAPPERS:
        inside = _field(report, wrapper)
        report = report if inside is None else inside
    for place in places:
        value: Any = report
        for key in place:
            value = _field(value, key)
        if (tokens := whole(value)) is not None:
            return tokens
    return 0


def _field(report: object, key: str) -> Any:
    if isinstance(report, Mapping):
        return report.get(key)
    try:
        return getattr(report, key, None)
    except Exception:  # noqa: BLE001 - a client's object may raise when it is looked at
        return None
