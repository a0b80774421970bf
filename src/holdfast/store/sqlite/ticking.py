"""The clock of a file's jobs, which never jumps or goes back, even if the system clock is set.

All processes that share a file run on one machine, whose kernel counts seconds since its start. The
count continues across restarts; if the kernel does not identify the start, the system clock is
used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from holdfast.store.operations.job_claims import JobTime
from holdfast.store.operations.jobs import JobClock
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, load

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SAVE_SECONDS = 60.0
_EVERYBODY = Scope()
"""For statements that are about no scope."""

_sql = load("jobs")


class FileClock(JobClock):
    """Tells now, on both clocks."""

    def __init__(
        self, wall: Callable[[], float], steady: Callable[[], float] | None, boot: str
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._boot = boot

    @classmethod
    def of(cls, wall: Callable[[], float]) -> FileClock:
        """The kernel's seconds beside the time of day; a clock of the caller's own is both."""
        if wall is not time.time or not hasattr(time, "CLOCK_BOOTTIME"):
            return cls(wall, None, "")
        try:
            boot = _BOOT.read_text().strip()
        except OSError:
            return cls(wall, None, "")
        # BOOTTIME, because MONOTONIC stops while a notebook sleeps.
        return cls(wall, lambda: time.clock_gettime(time.CLOCK_BOOTTIME), boot)

    def read(self, *, saves: bool) -> Operation[JobTime]:
        """Return now on both clocks; from time to time the ticks are saved."""
        wall = self._wall()
        if self._steady is None:
            return JobTime(wall, wall)
        since_start = self._steady()
        rows = yield _sql.clock(_EVERYBODY)
        boot, ahead, wall_before = rows[0] if rows else ("", 0.0, wall)
        is_new = boot != self._boot
        if is_new:
            ahead = max(wall, wall_before) - since_start
        ticks = since_start + ahead
        if saves and (is_new or ticks - wall_before > _SAVE_SECONDS):
            yield _sql.set_clock(_EVERYBODY, boot=self._boot, ahead=ahead, seen=ticks)
        return JobTime(wall, ticks)
