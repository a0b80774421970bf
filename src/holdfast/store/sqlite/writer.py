"""writer: one thread that writes, and threads that read; the event loop never waits on a disk.

writer: after lane and copying. Writes that wait together share one transaction, and so one flush of
the disk: acknowledged is durable, and many writers at once are fast all the same.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import apsw

from holdfast.errors import StoreUnavailableError
from holdfast.store.deadline import Breaker, has_deadline
from holdfast.store.sqlite import copying, scrubbing
from holdfast.store.sqlite.driver import (
    Job,
    in_our_words,
    rolled_back_on_failure,
    secret_beside,
)
from holdfast.store.sqlite.file import FileConnection, StoreFile
from holdfast.store.sqlite.lane import Lane, QueuedWork, WorkOutcome, closed

READERS = 4

_T = TypeVar("_T")


class Writer(Protocol):
    """Runs jobs that write, in order; each is committed or rolled back."""

    def submit(self, job: Job[_T]) -> asyncio.Future[_T]:
        """Run a job; the result is there once it is durable."""

    async def remove(self, job: Job[_T]) -> _T:
        """Run a job that removes records for good; a false result means none."""


class Readers(Protocol):
    """Runs jobs that read, each on one state of the store."""

    async def run(self, job: Callable[[], _T]) -> _T:
        """Run work that needs no connection, but time."""

    async def read(self, job: Job[_T]) -> _T:
        """Run a job that reads."""

    async def look(self, job: Job[_T]) -> _T:
        """Run a job of one statement that finds a row by its key: every request waits for some."""


class Database(Protocol):
    """Where a store keeps its records: a file, or memory."""

    url: str

    @property
    def writer(self) -> Writer:
        """What runs jobs that write."""

    @property
    def readers(self) -> Readers:
        """What runs jobs that read."""

    def scrub_soon(self) -> None:
        """Overwrite removed records soon; return at once."""

    async def scrub(self, *, whole: bool) -> bool:
        """Overwrite removed records; return whether none is left."""

    async def secret(self) -> bytes:
        """Return the random key of the store."""

    async def write_copy(self, target: Path) -> None:
        """Write all records to a new file."""

    async def close(self) -> None:
        """Finish the queued writes and close."""


class FileDatabase:
    """A database in a file; several processes may use it at once."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        """Open the file, and make it if it is not there."""
        self.url = f"sqlite:///{path}"
        self.breaker = Breaker(str(path))
        self._path = path
        with in_our_words(str(path)):
            file = StoreFile(path, busy_seconds)
            self.writer = FileWriter(file, self.breaker)
            self.readers = FileReaders(file, self.breaker)

    def scrub_soon(self) -> None:
        """Overwrite removed records in a thread; return at once."""
        self.writer.scrubber.begin()

    async def scrub(self, *, whole: bool) -> bool:
        """Overwrite removed records in the file and its log; return whether none is left."""
        return await asyncio.to_thread(self.writer.scrubber.scrub, whole=whole)

    async def secret(self) -> bytes:
        """Return a random key, from a file beside the store."""
        return await asyncio.to_thread(secret_beside, self._path)

    async def write_copy(self, target: Path) -> None:
        """Copy the file while it is in use."""
        copy = partial(copying.copy_file, self._path)
        await self.readers.run(partial(copying.write_whole, copy, target))

    async def close(self) -> None:
        """Finish the queued writes and close the file."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.breaker.close()
        self.readers.close()
        self.writer.close()


class FileWriter:
    """Runs jobs in order in one thread; each is committed or rolled back."""

    def __init__(self, file: StoreFile, breaker: Breaker) -> None:
        self._where = str(file.path)
        self._file = file
        self.scrubber = scrubbing.FileScrubber(partial(file.connect, read_only=False), file.path)
        db = FileConnection(file, read_only=False)
        self._lane = Lane(db, self._written, self._where, "holdfast-writer", breaker)

    def submit(self, job: Job[_T]) -> asyncio.Future[_T]:
        """Queue a job; the result is there once it is durable."""
        return self._lane.submit(job)

    async def remove(self, job: Job[_T]) -> _T:
        """Run a job that removes records for good; soon after, their bytes are overwritten.

        `job` returns something false if it removed nothing.
        """
        removed = await self.submit(lambda db: scrubbing.counted(db, job))
        if removed:
            self.scrubber.begin()
        return removed

    def close(self) -> None:
        """Finish the queued writes, then close the file."""
        self.scrubber.wait()
        self._lane.close()
        self._file.close()

    def _written(self, db: FileConnection, together: list[QueuedWork]) -> list[WorkOutcome]:
        try:
            results = _in_one_transaction(db.use(), [item.job for item in together])
            self._file.check_commit()
        except BaseException as error:  # noqa: BLE001 - whoever waits must be told
            self._file.suspect(error)
            if len(together) == 1 or isinstance(error, (apsw.BusyError, StoreUnavailableError)):
                # Another process holds the lock, or the file is missing: the jobs would fail one
                # by one for the same reason.
                ours = _in_our_words(error, self._where)
                return [WorkOutcome(item.future, None, ours) for item in together]
            # One of them failed, and nothing is written yet: each alone gets its own outcome.
            return [outcome for item in together for outcome in self._written(db, [item])]
        waiting = (item.future for item in together)
        return [WorkOutcome(*each) for each in zip(waiting, results, strict=True)]


def _in_our_words(error: BaseException, where: str) -> BaseException:
    try:
        with in_our_words(where):
            raise error  # noqa: TRY301 - to have it translated
    except BaseException as translated:  # noqa: BLE001 - handed on to whoever waits
        return translated


def _in_one_transaction(db: apsw.Connection, jobs: list[Job[Any]]) -> list[Any]:
    _leave_transaction(db)
    db.execute("BEGIN IMMEDIATE")
    with rolled_back_on_failure(db):
        results = [job(db) for job in jobs]
        db.execute("COMMIT")
    return results


def _leave_transaction(db: apsw.Connection) -> None:
    """Roll back a transaction that an internal error left open: it would block later jobs."""
    if db.in_transaction:
        db.execute("ROLLBACK")


class FileReaders:
    """Threads that read, each job on one state of the store."""

    def __init__(self, file: StoreFile, breaker: Breaker) -> None:
        self._file = file
        self._breaker = breaker
        self._where = str(file.path)
        self._idle: queue.LifoQueue[FileConnection] = queue.LifoQueue()
        self._threads = ThreadPoolExecutor(READERS, "holdfast-reader")
        db = FileConnection(file, read_only=True)
        self._looks = Lane(db, self._looked, self._where, "holdfast-look", breaker)
        self._closed = False

    async def run(self, job: Callable[[], _T]) -> _T:
        """Run work that needs no connection, but time."""
        if self._closed:
            raise closed(self._where)
        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    async def read(self, job: Job[_T]) -> _T:
        """Run a job that reads."""
        if self._closed:
            raise closed(self._where)
        self._breaker.admit()
        loop = asyncio.get_running_loop()
        reading = loop.run_in_executor(self._threads, self._read, job)
        return await self._breaker.run(reading) if has_deadline() else await reading

    async def look(self, job: Job[_T]) -> _T:
        """Run a job of one statement that finds a row by its key: every request waits for some.

        It sees one state by itself, and is over in less time than another thread would wake in.
        """
        return await self._looks.submit(job)

    def _looked(self, db: FileConnection, together: list[QueuedWork]) -> list[WorkOutcome]:
        return [self._outcome(db, item) for item in together]

    def _outcome(self, db: FileConnection, item: QueuedWork) -> WorkOutcome:
        try:
            return WorkOutcome(item.future, item.job(db.use()))
        except BaseException as error:  # noqa: BLE001 - whoever waits must be told
            self._file.suspect(error)
            return WorkOutcome(item.future, None, _in_our_words(error, self._where))

    def _read(self, job: Job[_T]) -> _T:
        with in_our_words(self._where):
            idle = self._idle_connection()
            try:
                db = idle.use()
                _leave_transaction(db)
                db.execute("BEGIN")
                with rolled_back_on_failure(db):
                    result = job(db)
                    db.execute("COMMIT")
            except BaseException as error:
                self._file.suspect(error)
                raise
            finally:
                self._idle.put(idle)
        return result

    def _idle_connection(self) -> FileConnection:
        """Return a connection that nobody uses; those to a file that was replaced are closed."""
        while True:
            try:
                idle = self._idle.get_nowait()
            except queue.Empty:
                return FileConnection(self._file, read_only=True)
            if not idle.is_stale:
                return idle
            idle.close()

    def close(self) -> None:
        """Finish the running reads, then close the connections."""
        self._closed = True
        self._looks.close()
        self._threads.shutdown(wait=True)
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
