"""Overwriting of removed rows in the file and in its write-ahead log.

The log holds every version of every page, so it is copied into the file and truncated.
`secure_delete` overwrites removed records with zeros, but not the copies in the unused part of a
page whose rows were moved: after 3,000 removals 139 of 180 pages had some. Only VACUUM rewrites all
pages, and it blocks writers. So after a removal a small file is rewritten at once, and a large one
only on request. All of it works while other processes have the store open.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from holdfast.store.sqlite.driver import Job, in_our_words

SMALL_BYTES = 64_000_000
"""A file of this size is written anew within about a second, for which requests may wait."""
SECONDS = 5.0
"""How long to wait for other processes that write, or read an older state."""
_BUSY_MILLISECONDS = 50
"""Of one try: nobody can write while a checkpoint waits for readers."""
_PAUSE_SECONDS = 0.02
_PAGES_AT_ONCE = 1000

_T = TypeVar("_T")


def count_removal(db: apsw.Connection) -> None:
    """Count a removal, so that other processes drop their copies."""
    db.execute("UPDATE removals SET number = number + 1 WHERE id = 1")


def counted(db: apsw.Connection, job: Job[_T]) -> _T:
    """Run a job that removes records, and count it as a removal if it removed any."""
    removed = job(db)
    if removed:
        count_removal(db)
    return removed


def removals(db: apsw.Connection) -> int:
    """Return how often records were removed for good."""
    return int(db.execute("SELECT number FROM removals WHERE id = 1").get)


class FileScrubber:
    """Overwrites removed rows after removals, several at once."""

    def __init__(self, connect: Callable[[], apsw.Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._lock = threading.Lock()
        self._is_wanted = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Overwrite soon, in a thread; nobody waits for it."""
        with self._lock:
            self._is_wanted = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast-scrub", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_wanted:
                    self._thread = None
                    return
                self._is_wanted = False
            self._scrub(whole=False)

    def wait(self) -> None:
        """Return when started work is done."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def scrub(self, *, whole: bool) -> bool:
        """Overwrite now, a large file only with `whole`; return whether nothing is left."""
        self.wait()
        return self._scrub(whole=whole)

    def _scrub(self, *, whole: bool) -> bool:
        """Overwrite; a failure is no reason to raise, for the records are removed."""
        try:
            with in_our_words(str(self._path)):
                db = self._connect()
                try:
                    db.set_busy_timeout(_BUSY_MILLISECONDS)
                    is_small = self._path.stat().st_size <= SMALL_BYTES
                    is_anew = (whole or is_small) and _insist(lambda: _write_anew(db))
                    if not is_anew:
                        _insist(lambda: shrink(db))
                    return _insist(lambda: _empty_log(db)) and is_anew
                finally:
                    db.close()
        except Exception:  # noqa: BLE001 - the next call tries again
            return False


def _insist(work: Callable[[], bool]) -> bool:
    """Try until it works or the time is over; return whether it did."""
    stop = time.monotonic() + SECONDS
    while True:
        try:
            if work():
                return True
        except (apsw.BusyError, apsw.LockedError):
            pass
        if time.monotonic() > stop:
            return False
        time.sleep(_PAUSE_SECONDS)


def _write_anew(db: apsw.Connection) -> bool:
    db.execute("VACUUM")
    return True


def shrink(db: apsw.Connection) -> bool:
    """Give a part of the free pages back to the disk; return whether none is left."""
    db.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
    return int(db.execute("PRAGMA freelist_count").get) == 0


def _empty_log(db: apsw.Connection) -> bool:
    """Copy the log into the file and cut it to nothing; False if others still read from it."""
    return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
