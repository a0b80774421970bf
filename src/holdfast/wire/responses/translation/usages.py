"""Read the usage report of each dialect, and write it in another.

Counts differ in what they include: Anthropic reports cached input separately, Gemini thinking
separately; OpenAI includes both. Reports are untrusted, so invalid counts are dropped.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.responses.translation.pieces import ResponseUsage
from holdfast.wire.values import inner


def _count(value: Any) -> int | None:
    plain = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return value if plain else None


def _sum(*counts: int | None) -> int | None:
    reported = [count for count in counts if count is not None]
    return sum(reported) if reported else None


def _account(report: dict[str, Any]) -> dict[str, int] | None:
    tokens = inner(report, "holdfast")
    counts = {key: count for key, value in tokens.items() if (count := _count(value)) is not None}
    return counts or None


# --- reading -----------------------------------------------------------------------------------


def from_chat(report: dict[str, Any]) -> ResponseUsage:
    """Read OpenAI chat usage; DeepSeek uses another name for cached tokens."""
    cached = _count(inner(report, "prompt_tokens_details").get("cached_tokens"))
    return ResponseUsage(
        input=_count(report.get("prompt_tokens")),
        output=_count(report.get("completion_tokens")),
        cached=_count(report.get("prompt_cache_hit_tokens")) if cached is None else cached,
        thinking=_count(inner(report, "completion_tokens_details").get("reasoning_tokens")),
        account=_account(report),
    )


def from_responses(report: dict[str, Any]) -> ResponseUsage:
    """Read OpenAI Responses usage."""
    return ResponseUsage(
        input=_count(report.get("input_tokens")),
        output=_count(report.get("output_tokens")),
        cached=_count(inner(report, "input_tokens_details").get("cached_tokens")),
        thinking=_count(inner(report, "output_tokens_details").get("reasoning_tokens")),
        account=_account(report),
    )


def from_anthropic(report: dict[str, Any]) -> ResponseUsage:
    """Read Anthropic usage, whose input excludes cached and newly cached tokens."""
    cached = _count(report.get("cache_read_input_tokens"))
    written = _count(report.get("cache_creation_input_tokens"))
    return ResponseUsage(
        input=_sum(_count(report.get("input_tokens")), cached, written),
        output=_count(report.get("output_tokens")),
        cached=cached,
        written=written,
        thinking=_count(inner(report, "output_tokens_details").get("thinking_tokens")),
        account=_account(report),
    )


def from_gemini(report: dict[str, Any]) -> ResponseUsage:
    """Read Gemini usage, whose output excludes thinking."""
    thinking = _count(report.get("thoughtsTokenCount"))
    prompt = _count(report.get("promptTokenCount"))
    return ResponseUsage(
        input=_sum(prompt, _count(report.get("toolUsePromptTokenCount"))),
        output=_sum(_count(report.get("candidatesTokenCount")), thinking),
        cached=_count(report.get("cachedContentTokenCount")),
        thinking=thinking,
        account=_account(report),
    )


# --- writing -----------------------------------------------------------------------------------


def _with_account(report: dict[str, Any], usage: ResponseUsage) -> dict[str, Any]:
    return {**report, "holdfast": usage.account} if usage.account else report


def to_chat(usage: ResponseUsage) -> dict[str, Any]:
    """Return OpenAI chat usage; clients require the three sums."""
    input_tokens, output_tokens = usage.input or 0, usage.output or 0
    report: dict[str, Any] = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    report["total_tokens"] = input_tokens + output_tokens
    if usage.cached is not None:
        report["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.thinking is not None:
        report["completion_tokens_details"] = {"reasoning_tokens": usage.thinking}
    return _with_account(report, usage)


def to_responses(usage: ResponseUsage) -> dict[str, Any]:
    """Return OpenAI Responses usage, with all counts."""
    input_tokens, output_tokens = usage.input or 0, usage.output or 0
    report = {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached or 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking or 0},
        "total_tokens": input_tokens + output_tokens,
    }
    return _with_account(report, usage)


def to_anthropic(usage: ResponseUsage) -> dict[str, Any]:
    """Return Anthropic usage; cached input is separate, and omitted if not reported."""
    cached_tokens = (usage.cached or 0) + (usage.written or 0)
    report: dict[str, Any] = {"input_tokens": max((usage.input or 0) - cached_tokens, 0)}
    if usage.written is not None or usage.cached is not None:
        report["cache_creation_input_tokens"] = usage.written or 0
        report["cache_read_input_tokens"] = usage.cached or 0
    report["output_tokens"] = usage.output or 0
    if usage.thinking is not None:
        report["output_tokens_details"] = {"thinking_tokens": usage.thinking}
    return _with_account(report, usage)


def to_gemini(usage: ResponseUsage) -> dict[str, Any]:
    """Return Gemini usage; thinking is separate from the output."""
    input_tokens, output_tokens = usage.input or 0, usage.output or 0
    thinking = min(usage.thinking or 0, output_tokens)
    report: dict[str, Any] = {"promptTokenCount": input_tokens}
    report["candidatesTokenCount"] = output_tokens - thinking
    report["totalTokenCount"] = input_tokens + output_tokens
    if usage.cached is not None:
        report["cachedContentTokenCount"] = usage.cached
    if usage.thinking is not None:
        report["thoughtsTokenCount"] = thinking
    return _with_account(report, usage)
