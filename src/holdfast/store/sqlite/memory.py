"""memory: a database in memory: one connection, used by whichever thread has a job for it.

memory: after writer, before store. A job is done at once, in the caller's own thread: no disk keeps
it waiting, and to wake another thread (0.1 ms) takes longer than most jobs. Several connections
would need SQLite's `memdb`, which has no log, so that whoever reads locks out whoever writes.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import apsw

from holdfast.store import rules
from holdfast.store.sqlite import copying, scrubbing
from holdfast.store.sqlite.driver import (
    Job,
    create_schema,
    in_our_words,
    keep_plans,
    rolled_back_on_failure,
)
from holdfast.store.sqlite.lane import closed, error_for_future
from holdfast.store.sqlite.writer import Readers, Writer

_T = TypeVar("_T")


class MemoryDatabase:
    """A database that ends with its process, or when it is closed; writer and readers in one."""

    def __init__(self) -> None:
        self.url = rules.MEMORY_URL
        self._lock = threading.Lock()
        """Held during a job: event loops of several threads may share a store."""
        self._db: apsw.Connection | None = _new_connection()
        self._secret = secrets.token_bytes(rules.SECRET_BYTES)

    @property
    def writer(self) -> Writer:
        """Return itself."""
        return self

    @property
    def readers(self) -> Readers:
        """Return itself."""
        return self

    def submit(self, job: Job[_T]) -> asyncio.Future[_T]:
        """Run a job that writes, whole or not at all; the future is done already."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(self._on_connection(lambda db: _in_transaction(db, job)))
        except Exception as error:  # noqa: BLE001 - whoever waits for the future must be told
            future.set_exception(error_for_future(error))
        return future

    async def remove(self, job: Job[_T]) -> _T:
        """Run a job that removes records for good; a false result means none."""
        return await self.submit(lambda db: scrubbing.counted(db, job))

    async def run(self, job: Callable[[], _T]) -> _T:
        """Run work that needs no connection, but time."""
        return await asyncio.to_thread(job)

    async def read(self, job: Job[_T]) -> _T:
        """Run a job that reads; no other job runs meanwhile."""
        return self._on_connection(job)

    async def look(self, job: Job[_T]) -> _T:
        """Run a job of one statement."""
        return self._on_connection(job)

    def _on_connection(self, job: Job[_T]) -> _T:
        with in_our_words(rules.MEMORY_URL), self._lock:
            if self._db is None:
                raise closed(rules.MEMORY_URL)
            return job(self._db)

    def scrub_soon(self) -> None:
        """Do nothing: removed records are on no disk, and copies are written without them."""

    async def scrub(self, *, whole: bool) -> bool:
        """Return True: nothing is on a disk."""
        del whole
        return True

    async def secret(self) -> bytes:
        """Return a random key."""
        return self._secret

    async def write_copy(self, target: Path) -> None:
        """Write a file that can be opened as a store."""

        def work(copy: Path) -> None:
            self._on_connection(lambda db: copying.write_vacuumed(db, copy))

        await asyncio.to_thread(copying.write_whole, work, target)

    async def close(self) -> None:
        """Let go of all records."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def _in_transaction(db: apsw.Connection, job: Job[_T]) -> _T:
    db.execute("BEGIN")
    with rolled_back_on_failure(db):
        result = job(db)
        db.execute("COMMIT")
    return result


def _new_connection() -> apsw.Connection:
    """Return a connection to an empty store.

    The tables are copied page by page: 0.3 ms, where the migrations take 4 ms. A deserialised
    database itself would do for small stores: it may not grow above 1 GB, in one piece of memory.
    """
    source = apsw.Connection(":memory:")
    db = apsw.Connection(":memory:")
    try:
        source.deserialize("main", _schema_image())
        with db.backup("main", source, "main") as copy:
            copy.step()
    finally:
        source.close()
    keep_plans(db)
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA temp_store = MEMORY")  # large sorts would write records to files
    return db


@cache
def _schema_image() -> bytes:
    db = apsw.Connection(":memory:")
    try:
        create_schema(db)
        return db.serialize("main")
    finally:
        db.close()
