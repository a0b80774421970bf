"""Learn from what providers report how far counts of a model are off, and correct them.

calibration: after counting. A model that is counted wrongly is mostly wrong in one of three ways: a
hidden prompt (a constant is missing), another vocabulary (a factor is), or both. For each model,
and apart for requests with and without tools, each is estimated by medians over the latest reports,
so that a wrong report moves little; the one that would have predicted the latest reports best is
used, and none where the plain count was better. `docs/discussions/calibration.md` explains it.
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
from holdfast.tokens.counting import Parts, TokenCount
from holdfast.wire.values import inner

_WINDOW = 60
"""Reports of one kind that are remembered."""
_FIRST = 3
"""Reports before a correction is tried."""
_TESTS = 2
"""Reports it is tried on before it is used."""
_RECENT = 25
"""Reports on which corrections are compared."""
_PAIRED = 40
"""Reports whose pairs give the slope of a line."""
_TINY = 200
"""Tokens of requests that say nothing about a factor: what a provider adds to each outweighs it."""
_WIDEST = 1.5
"""Most that a bound lies above a corrected count, as a share of it."""
_MOST_MODELS = 1000
"""Models that are remembered; the one that was not heard of for longest is forgotten first."""
_ABSURD = 20
"""A report this many times off is a mistake, not news."""

_LEAST_OF_EXACT = 0.6
"""A report of less than this share of an exact count is no provider's: gateways and frameworks that
estimate usage by words report 0.4 of it."""
_LEAST_SLACK = 0.02
"""How far a bound stays above a count that reports confirm: the next request may hold another kind
of content than those that were reported."""
_OFFSET = 1
"""The place of that way among the four."""

Errors = tuple[float, float, float, float]
"""For each way to correct a count: not at all, by an offset, by a factor, by a line."""


class Report(msgspec.Struct, frozen=True):
    """What was counted, and what the provider said."""

    counted: int
    reported: int
    errors: Errors
    """Relative errors that each way had before it knew this report; below 0: counted too few."""
    is_test: bool
    """Whether enough was known by then for the ways to differ."""


class Accuracy(msgspec.Struct, frozen=True):
    """How well a model's counts did over time."""

    model: str
    observed: int
    first_error: float
    """Median relative error of the plain count in the first 20 reports."""
    plain_error: float
    """Median relative error of the plain count lately."""
    corrected_error: float
    """Median relative error of the corrected count lately."""


def _spread(parts: Parts, tokens: int, *, scaled: bool) -> Parts:
    """The parts of a corrected count: a hidden prompt is formatting, a factor is in all of them."""
    plain = parts.system + parts.tools + parts.messages + parts.formatting
    factor = tokens / plain if scaled and plain > 0 else 1

    def grown(part: int) -> int:
        return max(1, round(part * factor)) if part > 0 else part

    system, tools, messages = grown(parts.system), grown(parts.tools), grown(parts.messages)
    return Parts(system, tools, messages, tokens - system - tools - messages)


def _slope(points: list[tuple[int, int]]) -> float:
    """The slope of a line through points of which up to half may be wrong (Siegel's)."""
    middles = [
        median(slopes)
        for x, y in points
        if (
            slopes := [(y - other_y) / (x - other_x) for other_x, other_y in points if x != other_x]
        )
    ]
    return max(0.0, median(middles)) if middles else 1.0


class _Kind:
    """Reports of one model, with tools or without; what they say is worked out once for each."""

    def __init__(self, reports: list[Report] | None = None) -> None:
        self.reports: deque[Report] = deque(reports or [], maxlen=_WINDOW)

    def predictions(self, counted: float) -> tuple[float, float, float, float]:
        """What each way makes of a count: plain, with an offset, with a factor, on a line."""
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
        """Whether only tiny requests were reported, and this one is not tiny."""
        return counted > _TINY > max((report.counted for report in self.reports), default=0)

    @cached_property
    def _fitted(self) -> tuple[float, float, float, float]:
        """Offset, factor, and the line through the reports, all by medians."""
        offset = median(r.reported - r.counted for r in self.reports)
        ratio = median(r.reported / max(1, r.counted) for r in self.reports)
        slope = _slope([(r.counted, r.reported) for r in list(self.reports)[-_PAIRED:]])
        start = median(r.reported - slope * r.counted for r in self.reports)
        return offset, ratio, slope, start

    def add(self, report: Report) -> None:
        """Take a report in."""
        self.reports.append(report)
        for known in ("_fitted", "best", "slack"):
            self.__dict__.pop(known, None)

    @cached_property
    def best(self) -> int:
        """The way that did best lately; the plain count if none is better."""
        tests = [report for report in self.reports if report.is_test][-_RECENT:]
        if len(tests) < _TESTS:
            return 0
        scores = [median(abs(test.errors[way]) for test in tests) for way in range(4)]
        return scores.index(min(scores))

    def with_tighter_bound(self, counted: TokenCount) -> TokenCount:
        """Return a count that is used as it is, with the bound that reports have shown."""
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
        """How far above a corrected count a report may lie: more the less was seen.

        One report in twenty may be wrong: it is left out if it stands alone.
        """
        way = self.best
        above = sorted(
            (max(0.0, 1 / max(0.01, 1 + r.errors[way]) - 1) for r in self.reports if r.is_test),
            reverse=True,
        )
        spare = len(above) // 20
        if above[0] > 3 * above[spare] + 0.1:
            above = above[spare:]
        return min(above[0] * 1.5 + 0.5 / len(self.reports), _WIDEST)


class Calibration:
    """Corrections for every model that reports were seen of; safe to share between threads."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, bool], _Kind] = {}
        self._first: dict[str, list[float]] = {}
        self._observed: dict[str, int] = {}
        self._lock = threading.Lock()
        self.ignored = 0
        """Reports that were refused as absurd."""

    def correct(self, counted: TokenCount) -> TokenCount:
        """A count with what was learnt about its model."""
        with self._lock:
            kind = self._kinds.get((counted.model, counted.parts.tools > 0))
            if kind is None:
                return counted
            if not (way := kind.best):
                return kind.with_tighter_bound(counted)
            tokens = round(kind.predictions(counted.plain)[way])
            upper = math.ceil(tokens * (1 + kind.slack) + 8)
            if kind.is_too_small_for(counted.plain):
                way, upper = _OFFSET, counted.upper + max(0, tokens - counted.plain)
        heuristic = counted.accuracy == "heuristic"
        return msgspec.structs.replace(
            counted,
            tokens=tokens,
            upper=max(upper, tokens),
            parts=_spread(counted.parts, tokens, scaled=way > 1),
            accuracy="calibrated" if heuristic else counted.accuracy,
            note=counted.note or "corrected by observed usage",
        )

    def observe(self, counted: TokenCount, reported_usage: object) -> None:
        """Learn from the usage that a provider reported for a counted request.

        The usage is a number of input tokens, or the provider's usage object in any dialect.
        """
        reported = reported_input(reported_usage)
        plain = max(1, counted.plain)
        least = plain * _LEAST_OF_EXACT if counted.accuracy == "exact" else plain / _ABSURD
        if reported is None or not least <= reported <= plain * _ABSURD + 4000:
            with self._lock:
                self.ignored += 1
            return
        with self._lock:
            self._make_room(counted.model)
            kind = self._kinds.setdefault((counted.model, counted.parts.tools > 0), _Kind())
            plainly, offset, ratio, line = kind.predictions(counted.plain)
            errors = (
                (plainly - reported) / reported,
                (offset - reported) / reported,
                (ratio - reported) / reported,
                (line - reported) / reported,
            )
            is_test = len(kind.reports) >= _FIRST
            kind.add(Report(counted.plain, reported, errors, is_test))
            first = self._first.setdefault(counted.model, [])
            if len(first) < 20:
                first.append(abs(errors[0]))
            # Put last: the first of them is the one that was not heard of for longest.
            self._observed[counted.model] = self._observed.pop(counted.model, 0) + 1

    def _make_room(self, model: str) -> None:
        if model not in self._observed and len(self._observed) >= _MOST_MODELS:
            oldest = next(iter(self._observed))
            del self._observed[oldest]
            self._first.pop(oldest, None)
            for tools in (False, True):
                self._kinds.pop((oldest, tools), None)

    def accuracy(self) -> list[Accuracy]:
        """How well counts did, by model; the most observed first (001-32)."""
        with self._lock:
            models = []
            for model, number in sorted(self._observed.items(), key=lambda item: -item[1]):
                kinds = [kind for (name, _), kind in self._kinds.items() if name == model]
                recent = [(r, kind.best) for kind in kinds for r in list(kind.reports)[-_RECENT:]]
                models.append(
                    Accuracy(
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
        """Everything learnt, as JSON; numbers and model names only."""
        with self._lock:
            kinds = [
                _StoredKind(model, tools, list(kind.reports))
                for (model, tools), kind in self._kinds.items()
            ]
            stored = _Stored(kinds, self._first, self._observed, self.ignored)
        return msgspec.json.encode(stored)

    @classmethod
    def load(cls, dumped: bytes) -> Calibration:
        """What `dump` gave, brought back."""
        try:
            stored = msgspec.json.decode(dumped, type=_Stored)
        except msgspec.MsgspecError:
            raise StoreError(
                "the stored calibration cannot be read",
                where="calibration",
                fix="Remove it; counts will learn anew.",
            ) from None
        calibration = cls()
        calibration._kinds = {
            (kind.model, kind.tools): _Kind(kind.reports) for kind in stored.kinds
        }
        calibration._first, calibration._observed, calibration.ignored = (
            stored.first,
            stored.observed,
            stored.ignored,
        )
        return calibration


class _StoredKind(msgspec.Struct):
    model: str
    tools: bool
    reports: list[Report]


class _Stored(msgspec.Struct):
    kinds: list[_StoredKind]
    first: dict[str, list[float]]
    observed: dict[str, int]
    ignored: int
    version: Literal[1] = 1


# Where the dialects put the input tokens, and what they leave out of them.
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
    """The input tokens of a usage report; None if it makes no sense."""
    if isinstance(usage, bool):
        return None
    if isinstance(usage, int):
        return usage if usage > 0 else None
    if not isinstance(usage, dict):
        return None
    usage = inner(usage, "usage") or inner(usage, "usageMetadata") or usage
    key = next((key for key in _INPUT_KEYS if key in usage), "")
    total = _number(usage.get(key))
    # Anthropic and Bedrock report cached input apart; where it is called a prompt, it is within.
    if not key.startswith("prompt"):
        total += sum(_number(usage.get(cached)) for cached in _CACHE_KEYS)
    return total if total > 0 else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
