"""The cost of a request, and its cost had it been sent as asked: the formula of every figure.

accounting: after vendor_cache, before session. docs/reference/bill.md documents the formula with an
example. In short:

    cost      = sum over upstream calls and token classes of tokens * list price
    untouched = the same for one call with the asked request, under the same cache rules
    saved     = untouched - cost

Providers report the tokens of upstream calls. The tokens of the asked request are those of the
first call plus the difference of our own counts. Our counts are taken before calibration, so that a
figure depends only on its own request, not on earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.budget.usage import reported_usage, token_count
from holdfast.engine.vendor_cache import (
    CallTokens,
    Lives,
    Policy,
    Prefixes,
    asked_call,
    expected_call,
    policy_of,
)
from holdfast.errors import SettingsError
from holdfast.fitting import Fitted
from holdfast.fitting.draft import FrameEdit
from holdfast.store.records import Edit, TurnUsage
from holdfast.tokens import TokenCount
from holdfast.tokens.prices import Price, bundled

CLIENT_LEFT = 499
"""Status of a request whose client did not wait for the answer; no provider sends it."""

_NANO = Decimal("1e-9")
"""Dollars are kept to the billionth: whole numbers of these have the same sum in any order."""
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


class ExpansionUsage(msgspec.Struct, frozen=True):
    """The parts that the model opened while it answered."""

    calls: int = 0
    """Of our tool."""
    tokens: int = 0
    """Tokens of the opened parts."""
    rounds: int = 0
    """Number of times that the prompt was sent again, followed by the opened parts."""
    refused: int = 0
    """Calls of our tool that opened nothing."""
    repeated: int = 0
    """Of these, calls that only repeated an earlier one."""
    withdrawn: int = 0
    """Whether the tool was forbidden: 1 or 0."""
    resent: int = 0
    """Number of times that the first request was sent again to avoid an empty answer."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Edits that record useless calls, and the reaction to them."""
        return tuple(_fruitless_edits(self))


def _fruitless_edits(expanded: ExpansionUsage) -> Iterator[Edit]:
    if expanded.refused:
        yield Edit(
            action="refuse",
            what=f"refused {expanded.refused} calls of the tool that opens refs",
            why=f"they found nothing; {expanded.repeated} repeated an earlier call",
            where="the answer",
        )
    if expanded.withdrawn:
        yield Edit(
            action="withhold",
            what="forbade the tool that opens refs",
            why="its calls brought nothing new",
            where="the answer",
        )
    if expanded.resent:
        yield Edit(
            action="resend",
            what="sent the request again without the tool that opens refs",
            why="the answer would have been empty, or the provider refused to go on",
            where="the answer",
        )


class ToolUse(msgspec.Struct, frozen=True):
    """How an answer used tools."""

    calls: int = 0
    """Of the client's tools."""
    lazy: int = 0
    """Of these, calls of tools whose schemas were set aside."""
    searches: int = 0
    """Of ours, for such tools."""


class ReusedAnswer(msgspec.Struct, frozen=True):
    """An answer that was given again from memory."""

    output: int
    """Output tokens of the answer when it was first given."""
    age_seconds: float = 0.0


class RequestCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Our counts of a request, before calibration."""

    predicted: int
    """Input tokens of the sent request."""
    untouched: int
    """Input tokens of the asked request."""
    unclaimed: int = 0
    """Of these, tokens that the client would not have sent without us: no saving is claimed."""
    is_exact: bool = False
    """Whether the counts are exact; else the difference between them is an estimate."""
    prefixes: Prefixes = Prefixes()
    cache_lives: Lives = frozenset()
    """For how long the client asks the provider to cache parts of the request."""
    billed: bool = True
    """Whether somebody bills the calls; nobody bills the offline model."""
    window: int | None = None
    """Tokens of the model's context window, if they are known."""

    @property
    def difference(self) -> int:
        """Tokens that the asked request has more than the sent one; negative if fewer."""
        return self.untouched - self.unclaimed - self.predicted


def remembered_usage(
    answer: ReusedAnswer, counted: RequestCounts, *, model: str, now: float
) -> TurnUsage:
    """Return the usage of a turn that was answered from memory: all of it was saved.

    The provider had the same request before, so its cache may have held all of it.
    """
    price = price_of(model, now)
    overflows = _overflows(counted.untouched, counted)
    tokens = counted.predicted if overflows else counted.untouched
    asked_call = CallTokens(input=tokens)
    if price is not None:
        prefixes = Prefixes(idle_seconds=answer.age_seconds)
        asked_call = expected_call(tokens, tokens, prefixes, policy_of(price), counted.cache_lives)
    asked_call = msgspec.structs.replace(asked_call, output=answer.output)
    usage = TurnUsage(answered=True, overflows=overflows)
    return msgspec.structs.replace(
        _with_money(usage, (), asked_call, price, billed=counted.billed),
        estimated=not counted.is_exact,
        assumed=True,
    )


def with_tools(usage: TurnUsage, tools: ToolUse, edits: Iterable[FrameEdit]) -> TurnUsage:
    """Return the usage of an answered turn with its use of tools; the edits are its frame's."""
    if usage.failed:
        return usage
    return msgspec.structs.replace(
        usage,
        lazy_saved=deferred_tokens(edits),
        tool_searches=tools.searches,
        tool_calls=tools.calls,
        lazy_calls=tools.lazy,
    )


def deferred_tokens(edits: Iterable[FrameEdit]) -> int:
    """Return the tokens of the tool schemas that a request omitted."""
    deferred = (each.edit for each in edits if each.edit.action == "defer")
    return sum(max(edit.from_tokens - edit.to_tokens, 0) for edit in deferred)


def turn_usage(
    reports: object,
    counted: RequestCounts,
    expanded: ExpansionUsage,
    *,
    model: str,
    now: float,
    status: int = 200,
) -> TurnUsage:
    """Return the usage of a turn from the providers' reports and our counts.

    `reports` is the usage of each upstream call in order, as a list or tuple. One report alone is
    taken as the sum of all calls. A call without a report counts with its predicted tokens.
    """
    # The provider answered although the client left, and bills the tokens that it read.
    failed = status >= 400 and status != CLIENT_LEFT
    reported = _reported_calls(reports, expanded, failed=failed)
    calls = reported or _predicted_calls(reports, counted, expanded, failed=failed)
    price = price_of(model, now)
    policy = policy_of(price) if price is not None else None
    is_measured = bool(reported) and counted.billed
    if not is_measured:
        calls = _with_expected_cache(calls, counted, policy)
    unchanged = len(calls) == 1 and not counted.difference
    overflows = False
    if failed or not calls:
        asked_call = CallTokens(input=0)
    elif unchanged:
        asked_call = calls[0]
    else:
        asked_call = _asked(calls, counted, policy, is_measured=is_measured)
        overflows = _overflows(asked_call.input, counted)
        if overflows:
            asked_call = _sum_of(calls)
    unreported = bool(calls) and not is_measured
    usage = TurnUsage(
        predicted=0 if failed else counted.predicted,
        expansions=expanded.calls,
        expansion_tokens=expanded.tokens,
        failed=failed,
        unreported=unreported,
        estimated=unreported or not (failed or unchanged or counted.is_exact),
        assumed=unreported or not (failed or unchanged),
        overflows=overflows,
    )
    return _with_money(usage, calls, asked_call, price, billed=counted.billed)


def _asked(
    calls: Sequence[CallTokens], counted: RequestCounts, policy: Policy | None, *, is_measured: bool
) -> CallTokens:
    """Return the call that the client would have made without us.

    Our counting error is the same in the sent and the asked request, and both include history that
    the provider stores and bills. Without us there would have been one call: the output of the
    calls before the last is what the model wrote to open stored content.
    """
    first, lives = calls[0], counted.cache_lives
    tokens = max(0, first.input + counted.difference)
    prefixes = _in_reported_tokens(counted, first.input)
    if is_measured:
        expected = asked_call(tokens, first, prefixes, policy, lives)
    else:
        expected = expected_call(tokens, prefixes.asked_known, prefixes, policy, lives)
    return msgspec.structs.replace(expected, output=calls[-1].output)


def _overflows(asked: int, counted: RequestCounts) -> bool:
    """Return whether a request exceeds the window, so that it would have been refused."""
    return counted.window is not None and asked > counted.window


def _sum_of(calls: Sequence[CallTokens]) -> CallTokens:
    """Return the calls as one."""
    return CallTokens(
        input=sum(call.input for call in calls),
        cached=sum(call.cached for call in calls),
        written=sum(call.written for call in calls),
        written_hour=sum(call.written_hour for call in calls),
        output=sum(call.output for call in calls),
    )


def _in_reported_tokens(counted: RequestCounts, reported: int) -> Prefixes:
    """Return positions in the provider's tokens: its count and ours differ by a factor."""
    factor = reported / max(1, counted.predicted)
    if not 0.5 <= factor <= 2:  # the provider bills stored content, such as a history
        factor = 1.0
    prefixes = counted.prefixes
    frame, prefix = round(prefixes.frame * factor), round(prefixes.known * factor)
    return msgspec.structs.replace(
        prefixes,
        frame=frame,
        asked_frame=max(0, frame + prefixes.asked_frame - prefixes.frame),
        known=prefix,
        asked_known=max(0, prefix + prefixes.asked_known - prefixes.known),
    )


def _with_money(
    usage: TurnUsage,
    calls: Sequence[CallTokens],
    asked: CallTokens,
    price: Price | None,
    *,
    billed: bool,
) -> TurnUsage:
    """Return the usage with tokens and dollars; those of the offline model are kept separate."""
    sent_call = _sum_of(calls)
    usage = msgspec.structs.replace(
        usage,
        input=sent_call.input,
        cached=sent_call.cached,
        cache_written=sent_call.written,
        cache_written_hour=sent_call.written_hour,
        output=sent_call.output,
        untouched=asked.input,
        untouched_cached=asked.cached,
        untouched_written=asked.written,
        untouched_written_hour=asked.written_hour,
        untouched_output=asked.output,
    )
    cost = saved = None
    if price is not None:
        exact = sum((call_cost(price, call) for call in calls), Decimal(0))
        cost, saved = _dollars(exact), _dollars(call_cost(price, asked) - exact)
    if billed:
        is_unpriced = price is None and bool(usage.input or usage.untouched)
        return msgspec.structs.replace(usage, cost=cost, saved_cost=saved, unpriced=is_unpriced)
    return msgspec.structs.replace(usage, cost=0.0, demo_cost=cost, demo_saved_cost=saved)


def _dollars(amount: Decimal) -> float:
    return float(amount.quantize(_NANO)) + 0.0  # without the sign of a zero


def price_of(model: str, now: float) -> Price | None:
    """Return the list price of a model; None where its name, the client's, is no name at all."""
    with suppress(SettingsError):
        return bundled().price(model, at=datetime.fromtimestamp(now, UTC))
    return None


def call_cost(price: Price, call: CallTokens) -> Decimal:
    """Return the cost of one call at list price, in US dollars."""
    if not call.input and not call.output:
        return Decimal(0)
    return price.cost(
        input_tokens=call.input,
        output_tokens=call.output,
        cache_read_tokens=call.cached,
        cache_write_tokens=call.written - call.written_hour,
        cache_write_hour_tokens=call.written_hour,
    )


def prefixes_of(fitted: Fitted) -> Prefixes:
    """Return where a request begins like the last answered one, in tokens."""
    how, sent_count = fitted.continuation, fitted.count
    if how is None:
        return Prefixes()
    asked_count = fitted.asked_count or sent_count
    frame = max(0, round(sent_count.plain - sum(sent_count.message_tokens)))
    asked_frame = max(
        0, round(asked_count.plain - fitted.unclaimed - sum(asked_count.message_tokens))
    )
    return Prefixes(
        frame=frame,
        asked_frame=asked_frame,
        known=_tokens_before(sent_count, how.sent),
        asked_known=max(0, _tokens_before(asked_count, how.asked) - fitted.unclaimed),
        broken=how.broken,
        idle_seconds=how.idle_seconds,
    )


def _tokens_before(counted: TokenCount, messages: int) -> int:
    """Return the tokens up to the end of some messages; 0 where messages are not counted apart."""
    if not messages or not counted.message_tokens:
        return 0
    return max(0, round(counted.plain - sum(counted.message_tokens[messages:])))


# --- the calls of a turn --------------------------------------------------------------------------


def _reported_calls(reports: object, expanded: ExpansionUsage, *, failed: bool) -> list[CallTokens]:
    """Return the calls as providers reported them; empty if one that was answered is missing."""
    if isinstance(reports, list | tuple):
        calls = [read_report(report) for report in reports]
        complete = failed or None not in calls
        return [call for call in calls if call is not None] if complete else []
    call = read_report(reports)
    return [] if call is None else _shares(call, expanded.rounds + 1)


def read_report(report: object) -> CallTokens | None:
    """Return the tokens that a provider reported for one call; None if it reported no input."""
    usage = reported_usage(report)
    if usage is None or not usage.input:
        return None
    # Parts never exceed the total, even if a provider reports so.
    cached = min(_first(report, _CACHED), usage.input)
    written = min(_first(report, _WRITTEN), usage.input - cached)
    return CallTokens(
        input=usage.input,
        cached=cached,
        written=written,
        written_hour=min(_first(report, _WRITTEN_FOR_AN_HOUR), written),
        output=usage.output or 0,
    )


def _shares(call: CallTokens, number: int) -> list[CallTokens]:
    """Return equal calls that add up to one: prices may rise with the size of a call."""
    counts = msgspec.structs.asdict(call)
    # By class, so that no call has more cached tokens than input tokens.
    counts["input"] -= call.cached + call.written
    counts["written"] -= call.written_hour
    shares = []
    for n in range(number):
        part = {name: total // number + (n < total % number) for name, total in counts.items()}
        part["written"] += part["written_hour"]
        part["input"] += part["cached"] + part["written"]
        shares.append(CallTokens(**part))
    return shares


def _predicted_calls(
    reports: object, counted: RequestCounts, expanded: ExpansionUsage, *, failed: bool
) -> list[CallTokens]:
    """Return the answered calls as predicted: the prompt, and the parts opened before each.

    The opened tokens are spread evenly, because their number per round is unknown. If a provider
    reports no input but its output, the output is used.
    """
    number = expanded.rounds + (not failed)
    opened = [expanded.tokens * n // max(1, expanded.rounds) for n in range(number)]
    calls = [CallTokens(input=counted.predicted + tokens) for tokens in opened]
    report_list = reports if isinstance(reports, list | tuple) else [reports]
    usages = [usage for report in report_list if (usage := reported_usage(report)) is not None]
    if calls and (output := sum(usage.output or 0 for usage in usages)):
        calls[-1] = msgspec.structs.replace(calls[-1], output=output)
    return calls


def _with_expected_cache(
    calls: Sequence[CallTokens], counted: RequestCounts, policy: Policy | None
) -> list[CallTokens]:
    """Return calls with the cache reads and writes that the provider's rules let expect."""
    expected = []
    cached = counted.prefixes.known
    for call in calls:
        split = expected_call(call.input, cached, counted.prefixes, policy, counted.cache_lives)
        expected.append(msgspec.structs.replace(split, output=call.output))
        cached = call.input
    return expected


def _first(report: object, places: tuple[tuple[str, ...], ...]) -> int:
    """Return the first count that is there; reports are read by their keys or attributes."""
    for wrapper in _WRAPPERS:
        inside = _field(report, wrapper)
        report = report if inside is None else inside
    for place in places:
        value: Any = report
        for key in place:
            value = _field(value, key)
        if (tokens := token_count(value)) is not None:
            return tokens
    return 0


def _field(report: object, key: str) -> Any:
    if type(report) is dict:  # as nearly all are: the check of the abstract class is slow
        return report.get(key)
    if isinstance(report, Mapping):
        return report.get(key)
    try:
        return getattr(report, key, None)
    except Exception:  # noqa: BLE001 - a client's object may raise when it is read
        return None
