"""Totals of the requests of one process: summed usage, and failures by cause.

tally: after seen, before telemetry. `holdfast wrap` prints its bill from these totals, so that the
bill contains the requests of its own run only, although other runs write to the same store.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from holdfast.store import Turn
from holdfast.store.records import UsageTotal, summed
from holdfast.store.rules import total
from holdfast.surfaces.proxy.seen import CLIENT_LEFT, RequestSeen, model_name

_SUM_AT = 50
"""Turns that are summed at once: 26 figures are added up each time."""
_MOST_CAUSES = 100
_MOST_MODELS = 20
_OTHER = "other"


class Failure(NamedTuple):
    """The cause of a failed request; contains no text of the conversation."""

    status: int
    provider: str
    """The provider that failed, such as `Anthropic`; empty if the proxy itself did."""
    error: str
    """The provider's error code, or the class name of our error."""


class RunReport(NamedTuple):
    """The figures of a run."""

    usage: UsageTotal
    failures: tuple[tuple[Failure, int], ...] = ()
    """Causes with their number of requests, the most frequent first."""
    unpriced_models: tuple[str, ...] = ()
    unrecorded: int = 0
    """Answered requests that are in no total, because the store could not record them."""


class Tally:
    """Sums up requests as they end."""

    def __init__(self) -> None:
        self._sum = summed("total", ())
        self._unsummed: list[Turn] = []
        self._failures: Counter[Failure] = Counter()
        self._unpriced: dict[str, None] = {}
        self._unrecorded = 0

    def add(self, seen: RequestSeen, status: int, turn: Turn | None) -> None:
        """Add a request that has ended; `turn` is its record, if there is one."""
        if turn is not None:
            self._unsummed.append(turn)
            if len(self._unsummed) >= _SUM_AT:
                self._usage()
            if turn.usage.unpriced and len(self._unpriced) < _MOST_MODELS:
                self._unpriced[model_name(turn.model)] = None
        if not seen.model or status == CLIENT_LEFT:
            return  # it named no model, or its client left
        if status >= 400:
            self._add_failure(seen, status, turn)
        elif turn is None:
            self._unrecorded += 1

    def _add_failure(self, seen: RequestSeen, status: int, turn: Turn | None) -> None:
        error = turn.error if turn is not None else seen.failure
        failure = Failure(status, seen.provider, error)
        if failure not in self._failures and len(self._failures) >= _MOST_CAUSES:
            failure = Failure(0, "", _OTHER)
        self._failures[failure] += 1

    def _usage(self) -> UsageTotal:
        if self._unsummed:
            self._sum = summed("total", (self._sum, total("", self._unsummed)))
            self._unsummed = []
        return self._sum

    def report(self) -> RunReport:
        """Return the totals so far."""
        causes = sorted(self._failures.items(), key=lambda cause: (-cause[1], cause[0]))
        return RunReport(self._usage(), tuple(causes), tuple(self._unpriced), self._unrecorded)
