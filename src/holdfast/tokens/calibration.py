"""Correct token counts with the usage that providers report.

A wrong count usually lacks a constant (a hidden prompt), needs a factor (another vocabulary), or
both; each correction is estimated by medians per model, separately for requests with and without
tools. The correction that best predicts the latest reports is applied, or none if the plain count
is better (docs/discussions/calibration.md).
"""

from __future__ import annotations

import math
import threading
from collections import deque
from functools import cached_property
from statistics import median
from typing import Any, Literal

import msgspec

from holdfast.errors import StoreError
from holdfast.tokens.counter import Parts, TokenCount
from holdfast.wire.values import inner

_WINDOW = 60
"""Number of reports kept per model and kind."""
_FIRST = 3
"""Reports required before a correction is tried."""
_TESTS = 2
"""Reports used to test a correction before it is applied."""
_RECENT = 25
"""Number of latest reports on which the corrections are compared."""
_PAIRED = 40
"""Number of reports whose pairs determine the slope of the line."""
_TINY = 200
"""Requests below this many tokens do not determine a factor: the tokens a provider adds outweigh
it.
"""
_WIDEST = 1.5
"""Maximum share by which the upper bound exceeds a corrected count."""
_MOST_MODELS = 1000
"""Maximum models kept; the model without a report for the longest time is evicted first."""
_ABSURD = 20
"""Reports that differ from the count by more than this factor are ignored as errors."""

_LEAST_OF_EXACT = 0.6
"""A report below this share of an exact count does not come from a provider: gateways and
frameworks that estimate usage by words report 0.4 of it.
"""
_LEAST_SLACK = 0.02
"""Minimum margin above a confirmed count, because the next request may hold another kind of content
than the reported ones.
"""
_OFFSET = 1
"""Index of the offset correction in `Errors`."""

Errors = tuple[float, float, float, float]
"""Relative error of each correction: none, offset, factor, line."""


class UsageReport(msgspec.Struct, frozen=True):
    """A counted request and the usage that the provider reported for it."""

    counted: int
    reported: int
    errors: Errors
    """Relative error of each correction before it included this report; negative if it counted too
    few.
    """
    is_test: bool
    """Whether enough reports existed at that time for the corrections to differ."""


class ModelAccuracy(msgspec.Struct, frozen=True):
    """The accuracy of a model's counts over time."""

    model: str
    observed: int
    first_error: float
    """Median relative error of the plain count in the first 20 reports."""
    plain_error: float
    """Median relative error of the plain count in recent reports."""
    corrected_error: float
    """Median relative error of the corrected count in recent reports."""


def _spread(parts: Parts, tokens: int, *, scaled: bool) -> Parts:
    """Return the parts of a corrected count.

    An offset is a hidden prompt and goes to `formatting`; a factor applies to every part.
    """
    plain = parts.system + parts.tools + parts.messages + parts.formatting
    factor = tokens / plain if scaled and plain > 0 else 1

    def scaled_part(part: int) -> int:
        return max(1, round(part * factor)) if part > 0 else part

    system, tools, messages = (
        scaled_part(parts.system),
        scaled_part(parts.tools),
        scaled_part(parts.messages),
    )
    return Parts(system, tools, messages, tokens - system - tools - messages)


def _slope(points: list[tuple[int, int]]) -> float:
    """Return the slope of a line through points of which up to half are outliers (Siegel's)."""
    middles = [
        median(slopes)
        for x, y in points
        if (
            slopes := [(y - other_y) / (x - other_x) for other_x, other_y in points if x != other_x]
        )
    ]
    return max(0.0, median(middles)) if middles else 1.0


class _ReportHistory:
    """The reports of one model with or without tools, and the cached statistics over them."""

    def __init__(self, reports: list[UsageReport] | None = None) -> None:
        self.reports: deque[UsageReport] = deque(reports or [], maxlen=_WINDOW)

    def predictions(self, counted: float) -> tuple[float, float, float, float]:
        """Return the count after each correction: none, offset, factor, line."""
        if len(self.reports) < _FIRST:
            return counted, counted, counted, counted
        offset, ratio, slope, start = self._fitted
        shifted = max(1.0, counted + offset)
        if self.is_too_small_for(counted):
            return counted, shifted, shifted, shifted
        return (
            counted,
            shifted,
            max(1.0, counted * ratio),
            max(1.0, counted * slope + start),
        )

    def is_too_small_for(self, counted: float) -> bool:
        """Return whether all reports are of tiny requests and this request is not tiny."""
        return counted > _TINY > max((report.counted for report in self.reports), default=0)

    @cached_property
    def _fitted(self) -> tuple[float, float, float, float]:
        """Return offset, factor, and the slope and start of the line, all estimated by medians."""
        offset = median(r.reported - r.counted for r in self.reports)
        ratio = median(r.reported / max(1, r.counted) for r in self.reports)
        slope = _slope([(r.counted, r.reported) for r in list(self.reports)[-_PAIRED:]])
        start = median(r.reported - slope * r.counted for r in self.reports)
        return offset, ratio, slope, start

    def add(self, report: UsageReport) -> None:
        """Add a report and drop the cached statistics."""
        self.reports.append(report)
        for cached in ("_fitted", "best", "slack"):
            self.__dict__.pop(cached, None)

    @cached_property
    def best(self) -> int:
        """Return the index of the correction with the lowest recent error; 0 is the plain count."""
        test_reports = [report for report in self.reports if report.is_test][-_RECENT:]
        if len(test_reports) < _TESTS:
            return 0
        scores = [median(abs(test.errors[way]) for test in test_reports) for way in range(4)]
        return scores.index(min(scores))

    def with_tighter_bound(self, counted: TokenCount) -> TokenCount:
        """Return an uncorrected count with the upper bound that reports justify."""
        if sum(report.is_test for report in self.reports) < _TESTS:
            return counted
        if self.is_too_small_for(counted.plain):
            return counted
        upper = math.ceil(counted.tokens * (1 + max(self.slack, _LEAST_SLACK)) + 8)
        if upper >= counted.upper:
            return counted
        return msgspec.structs.replace(counted, upper=max(upper, counted.tokens))

    @cached_property
    def slack(self) -> float:
        """Return the share by which a report may exceed a corrected count.

        The share is larger when fewer reports exist. One outlier in twenty reports is ignored.
        """
        way = self.best
        excesses = sorted(
            (max(0.0, 1 / max(0.01, 1 + r.errors[way]) - 1) for r in self.reports if r.is_test),
            reverse=True,
        )
        outliers = len(excesses) // 20
        if excesses[0] > 3 * excesses[outliers] + 0.1:
            excesses = excesses[outliers:]
        return min(excesses[0] * 1.5 + 0.5 / len(self.reports), _WIDEST)


class Calibration:
    """Corrections for all models with reports. Safe to share between threads."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, bool], _ReportHistory] = {}
        self._first: dict[str, list[float]] = {}
        self._observed: dict[str, int] = {}
        self._lock = threading.Lock()
        self.ignored = 0
        """Number of reports ignored as implausible."""

    def correct(self, count: TokenCount) -> TokenCount:
        """Return a count corrected by the reports of its model."""
        with self._lock:
            kind = self._kinds.get((count.model, count.parts.tools > 0))
            if kind is None:
                return count
            if not (way := kind.best):
                return kind.with_tighter_bound(count)
            tokens = round(kind.predictions(count.plain)[way])
            upper = math.ceil(tokens * (1 + kind.slack) + 8)
            if kind.is_too_small_for(count.plain):
                way, upper = _OFFSET, count.upper + max(0, tokens - count.plain)
        heuristic = count.accuracy == "heuristic"
        return msgspec.structs.replace(
            count,
            tokens=tokens,
            upper=max(upper, tokens),
            parts=_spread(count.parts, tokens, scaled=way > 1),
            accuracy="calibrated" if heuristic else count.accuracy,
            note=count.note or "corrected by observed usage",
        )

    def observe(self, counted: TokenCount, reported_usage: object) -> None:
        """Record the usage that a provider reported for a counted request.

        `reported_usage` is a number of input tokens or the provider's usage object in any dialect.
        """
        reported = reported_input(reported_usage)
        plain = max(1, counted.plain)
        minimum = plain * _LEAST_OF_EXACT if counted.accuracy == "exact" else plain / _ABSURD
        if reported is None or not minimum <= reported <= plain * _ABSURD + 4000:
            with self._lock:
                self.ignored += 1
            return
        with self._lock:
            self._make_room(counted.model)
            kind = self._kinds.setdefault(
                (counted.model, counted.parts.tools > 0), _ReportHistory()
            )
            plain_prediction, offset, ratio, line = kind.predictions(counted.plain)
            errors = (
                (plain_prediction - reported) / reported,
                (offset - reported) / reported,
                (ratio - reported) / reported,
                (line - reported) / reported,
            )
            is_test = len(kind.reports) >= _FIRST
            kind.add(UsageReport(counted.plain, reported, errors, is_test))
            first = self._first.setdefault(counted.model, [])
            if len(first) < 20:
                first.append(abs(errors[0]))
            # Re-insert the model last, so that the first key is the one without a report for
            # longest.
            self._observed[counted.model] = self._observed.pop(counted.model, 0) + 1

    def _make_room(self, model: str) -> None:
        if model not in self._observed and len(self._observed) >= _MOST_MODELS:
            oldest = next(iter(self._observed))
            del self._observed[oldest]
            self._first.pop(oldest, None)
            for tools in (False, True):
                self._kinds.pop((oldest, tools), None)

    def accuracy(self) -> list[ModelAccuracy]:
        """Return the accuracy by model, most observed first."""
        with self._lock:
            models = []
            for model, number in sorted(self._observed.items(), key=lambda item: -item[1]):
                kinds = [kind for (name, _), kind in self._kinds.items() if name == model]
                recent = [(r, kind.best) for kind in kinds for r in list(kind.reports)[-_RECENT:]]
                models.append(
                    ModelAccuracy(
                        model,
                        number,
                        median(self._first.get(model) or [0.0]),
                        median([abs(r.errors[0]) for r, _ in recent] or [0.0]),
                        median([abs(r.errors[way]) for r, way in recent] or [0.0]),
                    )
                )
            return models

    # --- to and from a store -------------------------------------------------------------------

    def dump(self) -> bytes:
        """Return the learned state as JSON; it holds only numbers and model names."""
        with self._lock:
            kinds = [
                _StoredHistory(model, tools, list(kind.reports))
                for (model, tools), kind in self._kinds.items()
            ]
            stored = _StoredCalibration(kinds, self._first, self._observed, self.ignored)
        return msgspec.json.encode(stored)

    @classmethod
    def load(cls, dumped: bytes) -> Calibration:
        """Restore the state written by `dump`; raise `StoreError` if it cannot be decoded."""
        try:
            stored = msgspec.json.decode(dumped, type=_StoredCalibration)
        except msgspec.MsgspecError:
            raise StoreError(
                "the stored calibration cannot be read",
                where="calibration",
                fix="Remove it; counts will learn anew.",
            ) from None
        calibration = cls()
        calibration._kinds = {
            (kind.model, kind.tools): _ReportHistory(kind.reports) for kind in stored.kinds
        }
        calibration._first, calibration._observed, calibration.ignored = (
            stored.first,
            stored.observed,
            stored.ignored,
        )
        return calibration


class _StoredHistory(msgspec.Struct):
    model: str
    tools: bool
    reports: list[UsageReport]


class _StoredCalibration(msgspec.Struct):
    kinds: list[_StoredHistory]
    first: dict[str, list[float]]
    observed: dict[str, int]
    ignored: int
    version: Literal[1] = 1


# The dialects' keys for input tokens, and for the cached input that some count separately.
_INPUT_KEYS = (
    "input_tokens",
    "prompt_tokens",
    "promptTokenCount",
    "inputTokens",
    "prompt_token_count",
)
_CACHE_KEYS = (
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
)


def reported_input(usage: object) -> int | None:
    """Return the input tokens of a usage report; None if it has no valid number."""
    if isinstance(usage, bool):
        return None
    if isinstance(usage, int):
        return usage if usage > 0 else None
    if not isinstance(usage, dict):
        return None
    usage = inner(usage, "usage") or inner(usage, "usageMetadata") or usage
    key = next((key for key in _INPUT_KEYS if key in usage), "")
    total = _number(usage.get(key))
    # Anthropic and Bedrock report cached input separately. In dialects with "prompt" keys, cached
    # tokens are included in the total.
    if not key.startswith("prompt"):
        total += sum(_number(usage.get(cached)) for cached in _CACHE_KEYS)
    return total if total > 0 else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
