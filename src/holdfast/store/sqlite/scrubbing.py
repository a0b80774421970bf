"""scrubbing: what is removed leaves no bytes in the file, nor in its write-ahead log.

scrubbing: after driver, before writer. `secure_delete` overwrites removed records in the main file
with zeros, but only once the log is copied into it, and until then the log holds every version of
every page. So after a removal the log is copied and cut to nothing, also while other processes have
the store open.
"""

from __future__ import annotations

import time

import apsw

SECONDS = 2.0
"""How long to wait for other processes that read an older state."""
_BUSY_MILLISECONDS = 50
"""Of one try: nobody can write while it waits for readers."""
_PAUSE_SECONDS = 0.02


def count_removal(db: apsw.Connection) -> None:
    """Count a removal, so that other processes drop their copies."""
    db.execute("UPDATE removals SET number = number + 1")


def removals(db: apsw.Connection) -> int:
    """Return how often records were removed for good."""
    return int(db.execute("SELECT number FROM removals").get)


def shrink(db: apsw.Connection) -> bool:
    """Give a part of the free pages back to the disk; return whether there are more."""
    db.execute("PRAGMA incremental_vacuum(1000)").fetchall()
    return int(db.execute("PRAGMA freelist_count").get) > 0


def empty_log(db: apsw.Connection, seconds: float = SECONDS) -> bool:
    """Copy the log into the file and cut it to nothing; False if others read from it too long.

    Outside of a transaction.
    """
    db.set_busy_timeout(_BUSY_MILLISECONDS)
    stop = time.monotonic() + seconds
    while True:
        try:
            is_busy = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0])
        except apsw.BusyError:
            is_busy = True
        if not is_busy:
            return True
        if time.monotonic() > stop:
            return False
        time.sleep(_PAUSE_SECONDS)
