"""The clock of a file's jobs, which never jumps or goes back, even if the system clock is set.

All processes that share a file run on one machine, whose kernel counts seconds since its start. The
count continues across restarts; if the kernel does not identify the start, the system clock is
used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import apsw

from holdfast.store.queue import Moment

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SAVE_SECONDS = 60.0


class Ticking:
    """Tells now, on both clocks."""

    def __init__(
        self, wall: Callable[[], float], steady: Callable[[], float] | None, boot: str
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._boot = boot

    @classmethod
    def of(cls, wall: Callable[[], float]) -> Ticking:
        """The kernel's seconds beside the time of day; a clock of the caller's own is both."""
        if wall is not time.time or not hasattr(time, "CLOCK_BOOTTIME"):
            return cls(wall, None, "")
        try:
            boot = _BOOT.read_text().strip()
        except OSError:
            return cls(wall, None, "")
        # BOOTTIME, because MONOTONIC stops while a notebook sleeps.
        return cls(wall, lambda: time.clock_gettime(time.CLOCK_BOOTTIME), boot)

    def moment(self, db: apsw.Connection) -> Moment:
        """Now, for a transaction that only reads."""
        moment, _ = self._now(db)
        return moment

    def noted(self, db: apsw.Connection) -> Moment:
        """Now, for a transaction that writes: from time to time it is written down."""
        moment, ahead = self._now(db)
        if ahead is not None:
            db.execute(
                "INSERT OR REPLACE INTO clock (id, boot, ahead, seen) VALUES (1, ?, ?, ?)",
                (self._boot, ahead, moment.ticks),
            )
        return moment

    def _now(self, db: apsw.Connection) -> tuple[Moment, float | None]:
        """Now; and how far the ticks are ahead, if that is to be written down."""
        wall = self._wall()
        if self._steady is None:
            return Moment(wall, wall), None
        since_start = self._steady()
        row = db.execute("SELECT boot, ahead, seen FROM clock").fetchone()
        if row is not None and row[0] == self._boot:
            ticks = since_start + row[1]
            return Moment(wall, ticks), row[1] if ticks - row[2] > _SAVE_SECONDS else None
        ticks = wall if row is None else max(wall, row[2])
        return Moment(wall, ticks), ticks - since_start
