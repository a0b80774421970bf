"""The queue on PostgreSQL: workers on many machines, woken when a job is queued."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.store.operations.job_claims import InFunction, JobTime
from holdfast.store.operations.jobs import JobClock, SqlJobQueue
from holdfast.store.postgres.database import ConnectionPool
from holdfast.store.postgres.listening import NotificationListener
from holdfast.store.statements import Operation, Runner


class ServerClock(JobClock):
    """The server's clock, unless a test has set another."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = None if clock is time.time else clock

    def read(self, *, saves: bool) -> Operation[JobTime]:
        """Return the time that a test has set."""
        del saves
        yield from ()  # an operation without a statement
        now = None if self._clock is None else self._clock()
        return JobTime(now, now)


class PostgresQueue(SqlJobQueue):
    """Jobs in the database of the store."""

    def __init__(
        self, database: ConnectionPool, runner: Runner, clock: Callable[[], float]
    ) -> None:
        super().__init__(runner, ServerClock(clock), InFunction())
        self._listening = NotificationListener(database, "holdfast_jobs", self._bell.ring)

    async def wait(self, seconds: float) -> None:
        """Return once jobs may have been queued; without a server, when the time is over."""
        if await self._listening.begin():
            return  # jobs queued before listening started are found by polling once more
        await self._bell.wait(seconds)

    async def close(self) -> None:
        """Stop listening."""
        await self._listening.end()
