"""A limit on how often a context may be optimised on demand (001-79).

pace: beside requests. Time comes as an argument.
"""

from __future__ import annotations

from collections import deque

from holdfast.errors import ContextOptimizationError

WINDOW_SECONDS = 60.0


class Pace:
    """Limits the requests in a minute."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._times: deque[float] = deque(maxlen=max(most, 1))

    def take(self, now: float) -> None:
        """Note one, or raise `ContextOptimizationError` if there were too many."""
        oldest = self._times[0] if len(self._times) == self._times.maxlen else None
        waits = 0.0 if oldest is None else oldest + WINDOW_SECONDS - now
        if self.most < 1 or waits > 0:
            raise ContextOptimizationError(
                f"the context was trimmed {self.most} times within a minute",
                where="trims_per_minute",
                fix=f"Wait {max(waits, 1):.0f} seconds; each request is made to fit without it.",
            )
        self._times.append(now)
