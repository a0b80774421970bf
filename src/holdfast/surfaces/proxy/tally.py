"""The sums of one process's requests: usage, and failures by cause.

`holdfast wrap` prints its bill from them, so that a bill covers the requests of its own run only.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from holdfast.store import Turn
from holdfast.store.records import UsageTotal, summed
from holdfast.store.rules import total
from holdfast.surfaces.proxy.seen import CLIENT_LEFT, RequestSeen, model_name

_MOST_CAUSES = 100
_MOST_MODELS = 20
_OTHER = "other"


class Failure(NamedTuple):
    """The cause of a failed request, without text of the conversation."""

    status: int
    provider: str
    """The failed upstream, such as `Anthropic`; empty if it was the proxy itself."""
    error: str
    """The provider's name for the error, or the class of our error."""


class RunReport(NamedTuple):
    """The figures of a run."""

    usage: UsageTotal
    failures: tuple[tuple[Failure, int], ...] = ()
    """Causes with their number of requests, the most frequent first."""
    unpriced_models: tuple[str, ...] = ()
    unrecorded: int = 0
    """Answered requests that are in no sum: the store could not take them."""


class Tally:
    """Adds requests up as they end."""

    def __init__(self) -> None:
        self._usage = summed("total", ())
        self._failures: Counter[Failure] = Counter()
        self._unpriced: dict[str, None] = {}
        self._unrecorded = 0

    def add(self, seen: RequestSeen, status: int, turn: Turn | None) -> None:
        """Add a request that has ended; `turn` is its record, if there is one."""
        if turn is not None:
            self._usage = summed("total", (self._usage, total("", [turn])))
            if turn.usage.unpriced and len(self._unpriced) < _MOST_MODELS:
                self._unpriced[model_name(turn.model)] = None
        if not seen.model or status == CLIENT_LEFT:
            return  # it asked no model, or its client did not wait
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

    def report(self) -> RunReport:
        """Return the figures so far."""
        causes = sorted(self._failures.items(), key=lambda cause: (-cause[1], cause[0]))
        return RunReport(self._usage, tuple(causes), tuple(self._unpriced), self._unrecorded)
