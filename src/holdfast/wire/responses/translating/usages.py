"""Read the usage report of each dialect, and write it in another.

Counts differ in what they include: Anthropic reports cached input separately, Gemini thinking
separately; OpenAI includes both. Reports are untrusted, so invalid counts are dropped.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.responses.translating.pieces import Spent
from holdfast.wire.values import inner


def _count(value: Any) -> int | None:
    plain = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return value if plain else None


def _sum(*counts: int | None) -> int | None:
    there = [count for count in counts if count is not None]
    return sum(there) if there else None


def _account(report: dict[str, Any]) -> dict[str, int] | None:
    tokens = inner(report, "holdfast")
    counts = {key: count for key, value in tokens.items() if (count := _count(value)) is not None}
    return counts or None


# --- reading -----------------------------------------------------------------------------------


def from_chat(report: dict[str, Any]) -> Spent:
    """Read OpenAI chat usage; DeepSeek uses another name for cached tokens."""
    cached = _count(inner(report, "prompt_tokens_details").get("cached_tokens"))
    return Spent(
        input=_count(report.get("prompt_tokens")),
        output=_count(report.get("completion_tokens")),
        cached=_count(report.get("prompt_cache_hit_tokens")) if cached is None else cached,
        thinking=_count(inner(report, "completion_tokens_details").get("reasoning_tokens")),
        account=_account(report),
    )


def from_responses(report: dict[str, Any]) -> Spent:
    """Read OpenAI Responses usage."""
    return Spent(
        input=_count(report.get("input_tokens")),
        output=_count(report.get("output_tokens")),
        cached=_count(inner(report, "input_tokens_details").get("cached_tokens")),
        thinking=_count(inner(report, "output_tokens_details").get("reasoning_tokens")),
        account=_account(report),
    )


def from_anthropic(report: dict[str, Any]) -> Spent:
    """Read Anthropic usage, whose input excludes cached and newly cached tokens."""
    cached = _count(report.get("cache_read_input_tokens"))
    written = _count(report.get("cache_creation_input_tokens"))
    return Spent(
        input=_sum(_count(report.get("input_tokens")), cached, written),
        output=_count(report.get("output_tokens")),
        cached=cached,
        written=written,
        thinking=_count(inner(report, "output_tokens_details").get("thinking_tokens")),
        account=_account(report),
    )


def from_gemini(report: dict[str, Any]) -> Spent:
    """Read Gemini usage, whose output excludes thinking."""
    thinking = _count(report.get("thoughtsTokenCount"))
    prompt = _count(report.get("promptTokenCount"))
    return Spent(
        input=_sum(prompt, _count(report.get("toolUsePromptTokenCount"))),
        output=_sum(_count(report.get("candidatesTokenCount")), thinking),
        cached=_count(report.get("cachedContentTokenCount")),
        thinking=thinking,
        account=_account(report),
    )


# --- writing -----------------------------------------------------------------------------------


def _told(report: dict[str, Any], usage: Spent) -> dict[str, Any]:
    return {**report, "holdfast": usage.account} if usage.account else report


def to_chat(usage: Spent) -> dict[str, Any]:
    """Return OpenAI chat usage; clients require the three sums."""
    shown, written = usage.input or 0, usage.output or 0
    report: dict[str, Any] = {"prompt_tokens": shown, "completion_tokens": written}
    report["total_tokens"] = shown + written
    if usage.cached is not None:
        report["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.thinking is not None:
        report["completion_tokens_details"] = {"reasoning_tokens": usage.thinking}
    return _told(report, usage)


def to_responses(usage: Spent) -> dict[str, Any]:
    """Return OpenAI Responses usage, with all counts."""
    shown, written = usage.input or 0, usage.output or 0
    report = {
        "input_tokens": shown,
        "input_tokens_details": {"cached_tokens": usage.cached or 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.thinking or 0},
        "total_tokens": shown + written,
    }
    return _told(report, usage)


def to_anthropic(usage: Spent) -> dict[str, Any]:
    """Return Anthropic usage; cached input is separate, and omitted if not reported."""
    apart = (usage.cached or 0) + (usage.written or 0)
    report: dict[str, Any] = {"input_tokens": max((usage.input or 0) - apart, 0)}
    if usage.written is not None or usage.cached is not None:
        report["cache_creation_input_tokens"] = usage.written or 0
        report["cache_read_input_tokens"] = usage.cached or 0
    report["output_tokens"] = usage.output or 0
    if usage.thinking is not None:
        report["output_tokens_details"] = {"thinking_tokens": usage.thinking}
    return _told(report, usage)


def to_gemini(usage: Spent) -> dict[str, Any]:
    """Return Gemini usage; thinking is separate from the output."""
    shown, written = usage.input or 0, usage.output or 0
    thinking = min(usage.thinking or 0, written)
    report: dict[str, Any] = {"promptTokenCount": shown}
    report["candidatesTokenCount"] = written - thinking
    report["totalTokenCount"] = shown + written
    if usage.cached is not None:
        report["cachedContentTokenCount"] = usage.cached
    if usage.thinking is not None:
        report["thoughtsTokenCount"] = thinking
    return _told(report, usage)
