"""queue: the queue on SQLite: the statements of jobs, run by the store's writer and readers.

queue: after jobs, before store. Workers of other processes find what is queued here when they
look the next time; those of this process are woken.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import apsw

from holdfast.store import queue as rules_of_jobs
from holdfast.store.operations import originals, summaries
from holdfast.store.queue import Bell, Claim, Ending, Job, JobQueue, NewJob, QueueFigures
from holdfast.store.scope import Scope
from holdfast.store.sqlite import jobs
from holdfast.store.sqlite.driver import Job as Work
from holdfast.store.sqlite.running import run
from holdfast.store.sqlite.ticking import Ticking
from holdfast.store.sqlite.writer import Readers, Writer

_T = TypeVar("_T")


class SqliteQueue(JobQueue):
    """Keeps jobs in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers, ticking: Ticking) -> None:
        self._writer = writer
        self._readers = readers
        self._ticking = ticking
        self._bell = Bell()
        self._turns: rules_of_jobs.Turns = {}

    async def _write(self, work: Work[_T]) -> _T:
        return await self._writer.submit(work)

    async def enqueue(self, scope: Scope, jobs_: Sequence[NewJob]) -> int:
        """Add jobs."""
        rules_of_jobs.check(jobs_)

        def work(db: apsw.Connection) -> int:
            return jobs.enqueue(db, scope, jobs_, self._ticking.noted(db))

        new = await self._write(work)
        self._bell.ring()
        return new

    async def claim(self, claim: Claim) -> list[Job]:
        """Take jobs that are due."""
        token = secrets.token_hex(16)

        def work(db: apsw.Connection) -> tuple[list[Job], bool]:
            now = self._ticking.noted(db)
            claimed, is_cut = jobs.claim(db, claim, token, now, self._turns)
            if not claimed and not is_cut and jobs.recover(db, now):
                return jobs.claim(db, claim, token, now, self._turns)
            return claimed, is_cut

        while True:
            claimed, is_cut = await self._write(work)
            if claimed or not is_cut:
                return claimed

    async def renew(self, jobs_: Sequence[Job], lease_seconds: float) -> set[int]:
        """Hold claimed jobs for longer."""
        return await self._write(
            lambda db: jobs.renew(db, jobs_, lease_seconds, self._ticking.noted(db))
        )

    async def settle(self, job: Job, ending: Ending) -> bool:
        """Write down how an attempt ended."""
        summary = None if ending.summary is None else summaries.values_of(ending.summary)

        def work(db: apsw.Connection) -> bool:
            is_ours = jobs.settle(db, job, ending, summary, self._ticking.noted(db))
            if is_ours and ending.gist:
                run(db, originals.retell(job.scope, job.ref_id, ending.gist))
            return is_ours

        is_ours = await self._write(work)
        if ending.delay_seconds is not None:
            self._bell.ring()
        return is_ours

    async def recover(self) -> int:
        """Queue jobs again whose lease ran out."""
        return await self._write(lambda db: jobs.recover(db, self._ticking.noted(db)))

    async def latest(
        self, scope: Scope | None, *, kind: str = "", state: str = "", limit: int = 100
    ) -> list[Job]:
        """The jobs queued last."""

        def work(db: apsw.Connection) -> list[Job]:
            now = self._ticking.moment(db)
            return jobs.latest(db, scope, kind=kind, state=state, limit=limit, now=now)

        return await self._readers.read(work)

    async def figures(self) -> QueueFigures:
        """How much there is to be done."""
        return await self._readers.read(lambda db: jobs.figures(db, self._ticking.moment(db)))

    async def spent(self, scope: Scope) -> dict[str, int]:
        """The tokens debited, by quota."""
        return await self._readers.read(partial(jobs.spent, scope=scope))

    async def forget_finished(self, age_seconds: float) -> int:
        """Remove jobs that ended so long ago."""
        forgotten = 0
        while part := await self._write(
            lambda db: jobs.forget_finished(db, age_seconds, self._ticking.noted(db))
        ):
            forgotten += part
        return forgotten

    async def wait(self, seconds: float) -> None:
        """Return once jobs may have been queued."""
        await self._bell.wait(seconds)
