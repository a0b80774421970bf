"""The store on SQLite.

Hashes and compresses in threads, and reads the clock.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw

from holdfast.store import transfer
from holdfast.store.operations import moving, sessions
from holdfast.store.operations.job_claims import OneByOne
from holdfast.store.operations.jobs import SqlJobQueue
from holdfast.store.operations.store import SqlStore
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import (
    CleanupResult,
)
from holdfast.store.scope import Scope
from holdfast.store.sqlite import scrubbing
from holdfast.store.sqlite.driver import BUSY_SECONDS, Job
from holdfast.store.sqlite.memory import MemoryDatabase
from holdfast.store.sqlite.running import SqliteRunner
from holdfast.store.sqlite.ticking import FileClock
from holdfast.store.sqlite.writer import Database, FileDatabase

_T = TypeVar("_T")


class SqliteStore(SqlStore):
    """Keeps everything in one file, which several processes may use at once, or in memory."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self.url = database.url
        self._database = database
        self._writer = writer = database.writer
        self._readers = readers = database.readers
        runner = SqliteRunner(writer, readers)
        # Workers of other processes find queued jobs only when they look the next time.
        jobs = SqlJobQueue(runner, FileClock.of(clock), OneByOne())
        super().__init__(runner, clock, jobs)

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        busy_seconds: float = BUSY_SECONDS,
    ) -> Self:
        """Open the file, and make it if it is not there."""
        file = await asyncio.to_thread(FileDatabase, Path(path).absolute(), busy_seconds)
        store = cls(file, clock)
        file.breaker.check = store.check
        return store

    @classmethod
    def in_memory(cls, *, clock: Callable[[], float] = time.time) -> Self:
        """Return an empty store that keeps nothing beyond its process."""
        return cls(MemoryDatabase(), clock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def _write(self, job: Job[_T]) -> _T:
        return await self._writer.submit(job)

    # Upkeep.

    async def check(self) -> None:
        """Raise unless the store can be read and written now."""
        await self._runner.look(sessions.read_any)
        await self._write(_check_writable)

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> CleanupResult:
        """Remove expired contents, and those of closed sessions."""
        cleaned = await super().gc(scope, grace_seconds=grace_seconds)
        while not await self._write(scrubbing.shrink):
            pass
        return cleaned

    def _scrub_soon(self) -> None:
        self._database.scrub_soon()

    async def scrub(self, *, whole: bool = False) -> bool:
        """Overwrite removed records in the file and its log."""
        return await self._database.scrub(whole=whole)

    async def removals(self) -> int:
        """Return how often records were removed for good."""
        return await self._readers.read(scrubbing.removals)

    async def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON."""
        yield transfer.encode(transfer.Header())
        await self._write(_nothing)
        for read in (self._jobs.lines, *moving.LINES):
            after: Any = None
            while True:
                lines, after = await self._runner.read(read, scope, after)
                for line in lines:
                    yield transfer.encode(line)
                if after is None:
                    break

    async def secret(self) -> bytes:
        """Return a random key of this store."""
        return await self._database.secret()

    async def backup(self, path: str) -> None:
        """Write a copy of the whole store while it is in use."""
        await self._write(_nothing)
        await self._database.write_copy(Path(path).absolute())

    async def close(self) -> None:
        """Finish pending writes and close."""
        await self._database.close()


def _nothing(db: apsw.Connection) -> None:
    """Do nothing: a job that runs after all queued ones."""


def _check_writable(db: apsw.Connection) -> None:
    # An empty transaction succeeds on a file that may only be read.
    if db.readonly("main"):
        raise apsw.ReadOnlyError("attempt to write a readonly database")
