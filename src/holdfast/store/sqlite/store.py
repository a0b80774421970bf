"""The store on SQLite.

Hashes and compresses in threads, and reads the clock.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw

from holdfast.store import answer_shelf, tool_shelf, transfer
from holdfast.store.answer_shelf import AnswerShelf
from holdfast.store.operations import moving as operations
from holdfast.store.operations import (
    sessions,
)
from holdfast.store.operations.store import SqlStore
from holdfast.store.protocol import GRACE_SECONDS, Progress
from holdfast.store.queue import JobQueue
from holdfast.store.records import (
    Cleaned,
    Damage,
)
from holdfast.store.scope import Scope
from holdfast.store.sqlite import (
    answers,
    moving,
    scrubbing,
    tools,
)
from holdfast.store.sqlite.driver import BUSY_SECONDS, Job
from holdfast.store.sqlite.memory import MemoryDatabase
from holdfast.store.sqlite.queue import SqliteQueue
from holdfast.store.sqlite.running import SqliteRunner
from holdfast.store.sqlite.ticking import Ticking
from holdfast.store.sqlite.writer import Database, FileDatabase
from holdfast.store.tool_shelf import ToolShelf

_T = TypeVar("_T")


class SqliteStore(SqlStore):
    """Keeps everything in one file, which several processes may use at once, or in memory."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self.url = database.url
        self._database = database
        self._writer = writer = database.writer
        self._readers = readers = database.readers
        super().__init__(SqliteRunner(writer, readers), clock)
        self._read = readers.read
        self._ticking = Ticking.of(clock)
        self.jobs: JobQueue = SqliteQueue(writer, readers, self._ticking)
        """Work for the background."""
        self.answers: AnswerShelf = answers.SqliteAnswers(writer, readers, clock)
        """Answers that may be given again."""
        self.tools: ToolShelf = tools.SqliteTools(writer, readers, clock)
        """Tools and their schemas."""

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

    async def verify(self, scope: Scope, progress: Progress | None = None) -> list[Damage]:
        """Read everything once."""
        damages = await super().verify(scope, progress)
        unsound = await self._read(partial(answers.unsound, scope=scope))
        if unsound:
            await self._write(partial(answers.remove_unsound, scope=scope, unsound=unsound))
        damages += [answer_shelf.damaged(sha256) for sha256 in unsound.values()]
        torn_tools = await self._read(partial(tools.unsound, scope=scope))
        if torn_tools:
            await self._write(partial(tools.remove_unsound, scope=scope, unsound=torn_tools))
        return damages + [tool_shelf.damaged(sha256) for sha256 in torn_tools.values()]

    async def gc(self, scope: Scope, *, grace_seconds: float = GRACE_SECONDS) -> Cleaned:
        """Remove expired contents, and those of closed sessions."""
        await self._write(partial(answers.remove_expired, scope=scope, now=self._clock()))
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
        return await self._read(scrubbing.removals)

    async def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """Every record of the scope as lines of JSON."""
        yield transfer.encode(transfer.Header())
        await self._write(_nothing)
        reads: list[moving.Read] = [*moving.ALL, partial(moving.job_lines, self._ticking)]
        reads += [partial(moving.page_of, lines) for lines in operations.LINES]
        for read in reads:
            after: Any = None
            while True:
                lines, after = await self._read(partial(_page, read, scope, after))
                for line in lines:
                    yield transfer.encode(line)
                if after is None:
                    break

    async def restore(self, scope: Scope, lines: AsyncIterator[bytes]) -> int:
        """Read what `export` wrote."""
        new = 0
        async for batch in transfer.batches(lines):
            packed = await self._readers.run(partial(operations.packed, batch))
            new += await self._write(
                partial(
                    moving.restore,
                    scope=scope,
                    batch=batch,
                    packed=packed,
                    ticking=self._ticking,
                )
            )
        return new

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


def _page(read: moving.Read, scope: Scope, after: Any, db: apsw.Connection) -> transfer.Page:
    return read(db, scope, after)
