"""writer: one thread that writes, and threads that read; the event loop never waits on a disk.

writer: after driver. Writes that wait together share one transaction, and so one flush of the
disk: acknowledged is durable, and many writers at once are fast all the same.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.sqlite.driver import (
    Job,
    Whereabouts,
    in_our_words,
    rolled_back_on_failure,
)

MOST_TOGETHER = 256
"""Writes that share a transaction at most, so that other processes get their turn."""
READERS = 4

_T = TypeVar("_T")
_Connect = Callable[[], apsw.Connection]


class _Queued(NamedTuple):
    job: Job[Any]
    future: Future[Any]


class Writer:
    """Runs jobs in order, in a thread of its own; each whole or not at all."""

    def __init__(self, connect: _Connect, path: Path) -> None:
        self._where = str(path)
        self._queue: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._closed = False
        db = connect()
        self._files = Whereabouts(path)
        self._thread = threading.Thread(
            target=self._run, args=(db,), name="holdfast-writer", daemon=True
        )
        self._thread.start()

    def submit(self, job: Job[_T]) -> Future[_T]:
        """Queue a job; the result is there once it is durable."""
        if self._closed:
            raise _closed(self._where)
        future: Future[_T] = Future()
        self._queue.put(_Queued(job, future))
        return future

    def close(self) -> None:
        """Finish what is queued, then end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self, db: apsw.Connection) -> None:
        while self._wrote_next(db):
            pass
        with suppress(apsw.Error):
            db.close()

    def _wrote_next(self, db: apsw.Connection) -> bool:
        """Do what waits; whether there may be more. What was written is not held until the next."""
        together = self._next()
        if together is None:
            return False
        accepted = [item for item in together if item.future.set_running_or_notify_cancel()]
        if accepted:
            self._write(db, accepted)
        return True

    def _next(self) -> list[_Queued] | None:
        """Wait for a job, and take all that wait behind it."""
        first = self._queue.get()
        if first is None:
            return None
        together = [first]
        while len(together) < MOST_TOGETHER:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._queue.put(None)
                break
            together.append(item)
        return together

    def _write(self, db: apsw.Connection, together: list[_Queued]) -> None:
        try:
            results = _in_one_transaction(db, [item.job for item in together])
            self._files.check()
        except BaseException as error:  # noqa: BLE001 - whoever waits must be told
            if len(together) == 1 or isinstance(error, (apsw.BusyError, StoreUnavailableError)):
                # Who waited for another process in vain has waited for all of them; and a file
                # that is gone is gone for all of them.
                for item in together:
                    item.future.set_exception(self._ours(error))
                return
            # One of them failed, and nothing is written yet: each alone gets its own outcome.
            for item in together:
                self._write(db, [item])
        else:
            for item, result in zip(together, results, strict=True):
                item.future.set_result(result)

    def _ours(self, error: BaseException) -> BaseException:
        try:
            with in_our_words(self._where):
                raise error  # noqa: TRY301 - to have it translated
        except BaseException as translated:  # noqa: BLE001 - handed on to whoever waits
            return translated


def _in_one_transaction(db: apsw.Connection, jobs: list[Job[Any]]) -> list[Any]:
    db.execute("BEGIN IMMEDIATE")
    with rolled_back_on_failure(db):
        results = [job(db) for job in jobs]
        db.execute("COMMIT")
    return results


class Readers:
    """Threads that read, each job on one state of the store."""

    def __init__(self, connect: _Connect, where: str) -> None:
        self._connect = connect
        self._where = where
        self._idle: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._threads = ThreadPoolExecutor(READERS, "holdfast-reader")
        self._closed = False

    async def run(self, job: Callable[[], _T]) -> _T:
        """Run work that needs no connection, but time."""
        if self._closed:
            raise _closed(self._where)
        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    async def read(self, job: Job[_T]) -> _T:
        """Run a job that reads."""
        return await self.run(lambda: self._read(job))

    def _read(self, job: Job[_T]) -> _T:
        with in_our_words(self._where):
            try:
                db = self._idle.get_nowait()
            except queue.Empty:
                db = self._connect()
            try:
                db.execute("BEGIN")
                with rolled_back_on_failure(db):
                    result = job(db)
                    db.execute("COMMIT")
            finally:
                self._idle.put(db)
        return result

    def close(self) -> None:
        """Finish what is being read, then let go."""
        self._closed = True
        self._threads.shutdown(wait=True)
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return


def _closed(where: str) -> StoreError:
    return StoreUnavailableError(
        "the store is closed", where=where, fix="Open it again with open_store."
    )
