"""The file that the connections of an open store use, and its integrity.

SQLite continues to write to a file that was deleted or moved away, and to a new log next to another
database: such writes are lost although they were acknowledged. So the file is checked before every
job and after every commit. If another file has its name, connections are reopened, after an
integrity check.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.sqlite.driver import connect, in_our_words, migrate, prepare

ABSENT_SECONDS = 5.0
"""Seconds that a file must be missing before a new store is created: it may only be moved briefly.
"""

_DAMAGE = (apsw.CorruptError, apsw.NotADBError)
"""Errors of a file that was truncated or written over."""


class _Look(NamedTuple):
    """The system's identification of a file."""

    device: int
    inode: int
    size: int
    modified: int

    def is_same_file(self, other: _Look | None) -> bool:
        return other is not None and self[:2] == other[:2]


def _look_at(path: Path) -> _Look | None:
    # Never opened: closing a descriptor drops SQLite's locks (https://sqlite.org/howtocorrupt.html).
    try:
        status = path.stat()
    except OSError:
        return None
    return _Look(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Let one process at a time put things in order, on Unix."""
    handle = None
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - Unix has it

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


_State = tuple[_Look | None, tuple[int, ...]]


def _state(main: _Look | None, log: _Look | None) -> _State:
    """Return what changes when somebody mends a file; an attempt to open it touches its log."""
    return main, tuple(log[:3]) if log is not None else ()


class StoreFile:
    """The file of an open store. Threads may use it at the same time."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        """Make the file if it is missing, and bring it to this version's schema."""
        self.path = path
        self._log = path.with_name(path.name + "-wal")
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        self.generation = 0
        """Connections of an earlier one belong to another file, to a damaged one, or were opened
        while the file could only be read."""
        self._is_suspect = False
        """A job has met damage."""
        self._unsound: _State | None = None
        """The file and its log when they were last found damaged: they are not read again."""
        self._absent_since: float | None = None
        prepare(path)
        migrate(path, busy_seconds)
        self._anchor = self._connect_and_read()
        """A connection to the file in use, for questions about it under the lock."""
        # Which files are in use changes only under the lock: a thread that looked at them before
        # another one has moved on must not bring the old ones back.
        self._main, self._log_in_use = _look_at(path), _look_at(self._log)
        self._size = self._main.size if self._main is not None else 0
        """Bytes of the file when it was last looked at."""

    def connect(self, *, read_only: bool) -> apsw.Connection:
        """Open a connection."""
        return connect(self.path, busy_seconds=self._busy_seconds, read_only=read_only)

    def _connect_and_read(self) -> apsw.Connection:
        """Open a connection, with a log beside the file: that is made by the first who reads."""
        db = self.connect(read_only=True)
        db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        return db

    def suspect(self, error: BaseException) -> None:
        """Have the file checked before the next job, if an error is a sign of damage.

        After a write that was not allowed, the next job gets a new connection: SQLite opens a file
        that may only be read without an error, and never tries again.
        """
        if isinstance(error, apsw.ReadOnlyError):
            with self._lock:
                self.generation += 1
        is_short = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHORT_READ
        if is_short or isinstance(error, _DAMAGE):
            self._is_suspect = True

    def close(self) -> None:
        """Let go of the file, as the last of its connections."""
        with self._lock:
            self._anchor.close()

    def check_commit(self) -> None:
        """Raise unless the last commit is in the files of these names."""
        main, log = _look_at(self.path), _look_at(self._log)
        if main is None or self._was_swapped(main, log):
            raise self._gone()
        if main.size < self._size:
            with self._lock:
                if self._lacks_pages(main):
                    self._check_integrity()
        self._size = main.size

    def renew(self) -> None:
        """Check that the file of this name can be used.

        Raises:
            StoreUnavailableError: it is missing, damaged, or the log next to it belongs to another
                file.
        """
        main, log = _look_at(self.path), _look_at(self._log)
        is_usable = main is not None and not self._was_swapped(main, log) and not self._is_suspect
        if main is not None and is_usable and main.size >= self._size:
            self._size, self._absent_since = main.size, None
            return
        with self._lock, _folder_lock(self.path.parent):
            self._renew()

    def _was_swapped(self, main: _Look, log: _Look | None) -> bool:
        in_use, log_in_use = self._main, self._log_in_use
        return not (main.is_same_file(in_use) and log is not None and log.is_same_file(log_in_use))

    def _renew(self) -> None:
        main, log = _look_at(self.path), _look_at(self._log)
        if self._unsound is not None and self._unsound == _state(main, log):
            raise self._damaged("the file of the store is damaged")
        is_same = main is not None and main.is_same_file(self._main)
        if main is not None and is_same:
            if self._was_swapped(main, log):
                # the log was deleted: other connections still use the deleted one
                raise self._gone()
            has_shrunk = main.size < self._size
            if not self._is_suspect and not (has_shrunk and self._lacks_pages(main)):
                self._size = main.size
                return
        elif main is None:
            self._wait_for_file()
        if not is_same and log is not None and log.is_same_file(self._log_in_use):
            self._leave_log()
            log = _look_at(self._log)
        has_log = log is not None and log.size > 0
        if main is None:
            if has_log:
                raise self._gone()
        elif not main.size and (has_log or is_same):
            # SQLite would remove the log of an empty file, and with it acknowledged writes.
            raise self._damaged("the file of the store was truncated")
        self._open_checked(main, log)

    def _lacks_pages(self, main: _Look) -> bool:
        """Return whether a file that shrank is shorter than its database: no vacuum does that."""
        with suppress(apsw.Error):
            pages = self._anchor.execute("PRAGMA page_count").get
            return bool(main.size < pages * self._anchor.execute("PRAGMA page_size").get)
        return True

    def _leave_log(self) -> None:
        """Complete the file that was replaced or moved away, and remove its log.

        A database opened with this log would be overwritten with its pages. Old connections, of
        other processes too, still have the log open, and must never share it with new ones: the
        second would cut off the first one's writes.
        """
        with suppress(apsw.Error):
            busy, *_ = self._anchor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            if not busy:
                self._log.unlink(missing_ok=True)
                self._log.with_name(self.path.name + "-shm").unlink(missing_ok=True)

    def _wait_for_file(self) -> None:
        """Raise unless the file has been missing for long enough to create a new one."""
        now = time.monotonic()
        self._absent_since = now if self._absent_since is None else self._absent_since
        is_moving = now - self._absent_since < ABSENT_SECONDS
        if is_moving or not self.path.parent.is_dir():
            raise self._gone()

    def _open_checked(self, main: _Look | None, log: _Look | None) -> None:
        try:
            with in_our_words(str(self.path)):
                prepare(self.path)
                if main is not None:
                    self._check_integrity()
                migrate(self.path, self._busy_seconds)
                anchor = self._connect_and_read()
        except StoreError as error:
            if isinstance(error.__cause__, _DAMAGE):
                self._unsound = _state(main, log)
            raise
        fresh = _look_at(self.path)
        self._size = fresh.size if fresh is not None else 0
        self._main, self._log_in_use = fresh, _look_at(self._log)
        self._unsound = self._absent_since = None
        self._is_suspect = False
        self._anchor.close()
        self._anchor = anchor
        self.generation += 1

    def _check_integrity(self) -> None:
        db = self.connect(read_only=True)
        try:
            if db.execute("PRAGMA quick_check(1)").get != "ok":
                raise apsw.CorruptError("quick_check")
        finally:
            db.close()

    def _gone(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            "the store's file was deleted, moved or replaced while it was open; nothing was stored",
            where=str(self.path),
            fix=f"Put it back, with its {self._log.name} if it had one: it is used at once. "
            "A restart makes a new store.",
        )

    def _damaged(self, what: str) -> StoreUnavailableError:
        return StoreUnavailableError(
            what,
            where=str(self.path),
            fix=f"Replace it and its {self._log.name} by a backup: it is used at once.",
        )


class FileConnection:
    """A connection to whichever file bears the store's name. One thread at a time uses it."""

    def __init__(self, file: StoreFile, *, read_only: bool) -> None:
        self._file = file
        self._read_only = read_only
        file.renew()  # nothing is opened beside the log of another file
        self._generation = file.generation
        self._db = file.connect(read_only=read_only)

    @property
    def is_stale(self) -> bool:
        """Whether the file that it belongs to is no longer in use."""
        return self._generation != self._file.generation

    def use(self) -> apsw.Connection:
        """Return the connection for one job.

        Raises:
            StoreUnavailableError: there is no sound file of that name.
        """
        self._file.renew()
        if self.is_stale:
            generation = self._file.generation
            fresh = self._file.connect(read_only=self._read_only)
            self.close()
            self._db, self._generation = fresh, generation
        return self._db

    def close(self) -> None:
        """Close the connection."""
        with suppress(apsw.Error):
            self._db.close()
