"""Track the token budget of a session, and decide whether the next request is allowed.

It may be shared between threads. It sends nothing and reads no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from holdfast.budget.book import UsageBook, UsageEntry
from holdfast.budget.ledger import (
    KINDS,
    Allowance,
    BudgetViolation,
    Kind,
    Overhead,
    TokenBudget,
    find_violation,
)
from holdfast.budget.report import (
    LimitSummary,
    TokenBudgetReport,
    TokenBudgetSnapshot,
    side_warning,
    warnings_of,
)
from holdfast.budget.usage import Usage, planned_usage, reported_usage
from holdfast.errors import SettingsError
from holdfast.tokens import TokenCount, count
from holdfast.tokens.counter import Correction

WARN_PERCENT = 80
"""Share of a limit, in percent, from which a warning is given."""

Counter = Callable[[object], TokenCount]
"""Custom counter for one provider's request bodies."""
Planned = int | TokenCount | Usage
"""A planned request: input tokens, a count (its upper bound is used), or both sides."""


class TokenBudgetManager:
    """Maintains a `TokenBudget` and refuses requests that would exceed it.

    Limits apply to all requests together; None means unlimited. `counters` maps provider ids to
    custom counters; `calibration` corrects all other estimates.
    """

    def __init__(
        self,
        *,
        input_limit: int | None = None,
        output_limit: int | None = None,
        total_limit: int | None = None,
        counters: Mapping[str, Counter] | None = None,
        calibration: Correction | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._book = UsageBook()
        self._limits: dict[Kind, int | None] = {}
        self._refused = 0
        self._counters = dict(counters or {})
        self._calibration = calibration
        for kind, limit in zip(KINDS, (input_limit, output_limit, total_limit), strict=True):
            self.set_limit(kind, limit)

    # --- before a request ------------------------------------------------------------------------

    def estimate_usage(self, conversation_or_body: object, provider_id: str) -> TokenCount:
        """Count a request's input before it is sent; nothing is recorded.

        If the provider's custom counter fails, the built-in count is used.
        """
        counter = self._counters.get(provider_id)
        if counter is not None:
            try:
                return counter(conversation_or_body)
            except Exception:  # noqa: BLE001, S110 - any failure falls back to the built-in count
                pass
        return count(conversation_or_body, model=provider_id, calibration=self._calibration)

    def estimate_completion(
        self,
        prompt: object,
        max_tokens: int,
        provider_id: str,
        counted: TokenCount | None = None,
    ) -> Usage:
        """Return the maximum usage of a request including its answer, for `reserve`.

        `counted` is an existing count of the prompt; it is used unless the provider has a custom
        counter.
        """
        if counted is None or provider_id in self._counters:
            counted = self.estimate_usage(prompt, provider_id)
        return Usage(counted.upper, max_tokens)

    def check_violation(self, planned: Planned) -> BudgetViolation | None:
        """Return the limit that the request would exceed; None if it may be sent."""
        usage = planned_usage(planned)
        with self._lock:
            return find_violation(self._budget(), usage)

    def reserve(self, provider_id: str, planned: Planned, request_id: str) -> None:
        """Reserve tokens for a request atomically, so that no other request can take them.

        A report with the same id replaces the reservation, and `release` cancels it. A retry with
        the same id does not count its own reservation.

        Raises:
            BudgetExceededError: the request would exceed a limit; nothing was reserved.
        """
        usage, overhead = planned_usage(planned), _overhead(planned)
        _check_name(provider_id, "provider_id")
        _check_name(request_id, "request_id")
        with self._lock:
            violation = find_violation(self._budget(without=self._book.find(request_id)), usage)
            if violation is not None:
                raise violation.error()
            self._book.record(
                provider_id, usage, is_report=False, request_id=request_id, overhead=overhead
            )

    def release(self, request_id: str) -> bool:
        """Release the reservation of an unsent request; return False if it was already reported."""
        with self._lock:
            entry = self._book.find(request_id)
            if entry is None or entry.input_known or entry.output_known:
                return False
            self._book.take_out(request_id)
            return True

    # --- after a request -------------------------------------------------------------------------

    def track_usage(self, provider_id: str, usage: object, request_id: str | None = None) -> bool:
        """Record the usage of a request; return False if the report is invalid and was refused.

        `usage` is a number of input tokens, the provider's usage object in any dialect, or a
        `TokenCount` if nothing was reported yet. The last report for a request id wins, and an
        estimate never replaces a report. A retry uses the id of its request, also at another
        provider.
        """
        _check_name(provider_id, "provider_id")
        if request_id is not None:
            _check_name(request_id, "request_id")
        is_report = not isinstance(usage, TokenCount)
        reported = reported_usage(usage.tokens if isinstance(usage, TokenCount) else usage)
        with self._lock:
            if reported is None:
                self._refused += 1
                return False
            self._book.record(
                provider_id,
                reported,
                is_report=is_report,
                request_id=request_id,
                overhead=_overhead(usage),
            )
            return True

    def set_limit(self, kind: Kind, limit: int | None) -> None:
        """Set a limit; None removes it, and 0 allows nothing."""
        if kind not in KINDS:
            raise SettingsError("there is no such limit", where="kind", fix=f"Take one of {KINDS}.")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise SettingsError("the limit is not a whole number", where=f"budget.{kind}")
        if limit is not None and limit < 0:
            raise SettingsError("the limit is below zero", where=f"budget.{kind}")
        with self._lock:
            self._limits[kind] = limit
            self._book.changes += 1

    # --- state -----------------------------------------------------------------------------------

    @property
    def budget(self) -> TokenBudget:
        """Return the current budget."""
        with self._lock:
            return self._budget()

    def info(self, kind: Kind = "total") -> LimitSummary:
        """Return a summary of one limit."""
        side = self.budget.side(kind)
        warning = side_warning(kind, side, WARN_PERCENT)
        return LimitSummary(side.used, side.limit, (warning,) if warning else ())

    def snapshot(self) -> TokenBudgetSnapshot:
        """Return an immutable copy of the current state."""
        with self._lock:
            return TokenBudgetSnapshot(
                self._book.changes, self._budget(), self._book.providers(), self._refused
            )

    def report(self) -> TokenBudgetReport:
        """Return a snapshot with its warnings."""
        snapshot = self.snapshot()
        return TokenBudgetReport(snapshot, warnings_of(snapshot, WARN_PERCENT))

    def _budget(self, without: UsageEntry | None = None) -> TokenBudget:
        sums = self._book.sums
        used_input, used_output = sums.input, sums.output
        if without is not None:
            used_input, used_output = used_input - without.input, used_output - without.output
        guessed = sums.inputs_unknown > 0, sums.outputs_unknown > 0
        return TokenBudget(
            Allowance(self._limits.get("input"), used_input, guessed[0]),
            Allowance(self._limits.get("output"), used_output, guessed[1]),
            Allowance(self._limits.get("total"), used_input + used_output, any(guessed)),
            sums.overhead,
        )


def _overhead(planned: object) -> Overhead:
    if not isinstance(planned, TokenCount):
        return Overhead()
    parts = planned.parts
    return Overhead(parts.system, parts.tools, parts.formatting)


def _check_name(value: object, where: str) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= 512 or not value.isprintable():
        raise SettingsError(
            "not a name of 1 to 512 printable characters", where=where, fix="Give a short text."
        )
