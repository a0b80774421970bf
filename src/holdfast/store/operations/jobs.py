"""The job queue on both databases; claims are in job_claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.store import queue
from holdfast.store.operations import originals, pages, summaries
from holdfast.store.operations.job_claims import JobSelection, JobTime, job_of, take
from holdfast.store.queue import (
    AttemptEnd,
    Bell,
    Claim,
    Depth,
    Job,
    JobQueue,
    NewJob,
    QueueFigures,
    Turns,
)
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Runner, Values, load
from holdfast.store.transfer import PAGE, JobLine, Page

_FORGOTTEN_AT_ONCE = 5_000
_EVERYBODY = Scope()
"""For statements that are about no scope."""

_sql = load("jobs")


class JobClock(ABC):
    """The clock that delays and leases are measured by."""

    @abstractmethod
    def read(self, *, saves: bool) -> Operation[JobTime]:
        """Return the time of an operation; `saves` if that may write."""


class SqlJobQueue(JobQueue):
    """Jobs in a database."""

    def __init__(self, runner: Runner, clock: JobClock, selection: JobSelection) -> None:
        self._runner = runner
        self._clock = clock
        self._selection = selection
        self._bell = Bell()
        self._turns: Turns = {}

    async def enqueue(self, scope: Scope, jobs: Sequence[NewJob]) -> int:
        """Add jobs; return how many were new."""
        queue.check(jobs)

        def work() -> Operation[int]:
            now = yield from self._clock.read(saves=True)
            new = 0
            for job in jobs:
                new += len((yield _sql.add(scope, **_new_values(job, now))))
            yield _sql.notify(_EVERYBODY)
            return new

        new = await self._runner.write(work)
        self._bell.ring()
        return new

    async def claim(self, claim: Claim) -> list[Job]:
        """Take jobs that are due."""
        claimed: list[Job] = []
        while True:
            remaining = msgspec.structs.replace(claim, limit=claim.limit - len(claimed))
            jobs, is_cut = await self._runner.write(self._claim, remaining)
            claimed += jobs
            if not is_cut or len(claimed) >= claim.limit:
                return claimed

    def _claim(self, claim: Claim) -> Operation[tuple[list[Job], bool]]:
        """Take jobs; return them, and whether there may be more after the skipped ones."""
        now = yield from self._clock.read(saves=True)
        jobs, is_cut = yield from take(claim, self._selection, self._turns, now)
        if not jobs and not is_cut and (yield from _recover(now)):
            return (yield from take(claim, self._selection, self._turns, now))
        return jobs, is_cut

    async def renew(self, jobs: Sequence[Job], lease_seconds: float) -> set[int]:
        """Renew the leases of claimed jobs; return the ids that still belong to the caller."""

        def work() -> Operation[set[int]]:
            now = yield from self._clock.read(saves=True)
            rows = yield _sql.renew(
                _EVERYBODY,
                ids=[job.id for job in jobs],
                claims=[f"{job.id} {job.token}" for job in jobs],
                seconds=lease_seconds,
                ticks=now.ticks,
            )
            return {id_ for (id_,) in rows}

        return await self._runner.write_one(work)

    async def settle(self, job: Job, ending: AttemptEnd) -> bool:
        """Record how an attempt ended; return whether it was the caller's to end."""
        values = None if ending.summary is None else summaries.values_of(ending.summary)

        def work() -> Operation[bool]:
            now = yield from self._clock.read(saves=True)
            attempt = {"id": job.id, "token": job.token, "state": ending.state}
            is_ours = yield _sql.settle(
                _EVERYBODY,
                **attempt,
                attempts=ending.attempts,
                error=ending.error,
                cost=ending.cost,
                delay=ending.delay_seconds,
                ticks=now.ticks,
                wall=now.wall,
            )
            if not is_ours:
                return bool((yield _sql.was_settled(_EVERYBODY, **attempt)))
            if values is not None:
                yield from summaries.put(job.scope, values)
            if ending.gist:
                yield from originals.retell(job.scope, job.ref_id, ending.gist)
            return True

        writes_more = values is not None or bool(ending.gist)
        is_ours = await (self._runner.write if writes_more else self._runner.write_one)(work)
        if ending.delay_seconds is not None:
            self._bell.ring()
        return is_ours

    async def recover(self) -> int:
        """Queue jobs again whose lease ran out; return how many."""

        def work() -> Operation[int]:
            return (yield from _recover((yield from self._clock.read(saves=True))))

        return await self._runner.write_one(work)

    async def latest(
        self, scope: Scope | None, *, kind: str = "", state: str = "", limit: int = 100
    ) -> list[Job]:
        """Return the jobs queued last."""

        def work() -> Operation[list[Job]]:
            now = yield from self._clock.read(saves=False)
            rows = yield _sql.latest(
                scope or _EVERYBODY,
                of_all=scope is None,
                kind=kind,
                state=state,
                limit=max(limit, 0),
            )
            return [job_of(row, now) for row in rows]

        return await self._runner.fetch(work)

    async def figures(self) -> QueueFigures:
        """Return how much there is to be done."""

        def work() -> Operation[QueueFigures]:
            now = yield from self._clock.read(saves=False)
            rows = yield _sql.depths(_EVERYBODY, ticks=now.ticks)
            ((cost,),) = yield _sql.cost_today(_EVERYBODY, wall=now.wall)
            names = Depth.__struct_fields__
            depths = [Depth(**dict(zip(names, row, strict=True))) for row in rows]
            return QueueFigures(depths=depths, cost_today=cost)

        return await self._runner.fetch(work)

    async def spent(self, scope: Scope) -> dict[str, int]:
        """Return the tokens debited, by quota."""

        def work() -> Operation[dict[str, int]]:
            return dict((yield _sql.spent(scope)))

        return await self._runner.fetch(work)

    async def forget_finished(self, age_seconds: float) -> int:
        """Remove jobs that ended so long ago, in parts; return how many."""

        def work() -> Operation[int]:
            now = yield from self._clock.read(saves=True)
            rows = yield _sql.forget_finished(
                _EVERYBODY, age=age_seconds, wall=now.wall, limit=_FORGOTTEN_AT_ONCE
            )
            return len(rows)

        forgotten = 0
        while part := await self._runner.write_one(work):
            forgotten += part
        return forgotten

    async def wait(self, seconds: float) -> None:
        """Return once jobs may have been queued in this process, or the time is over."""
        await self._bell.wait(seconds)

    # Export and restore.

    def lines(self, scope: Scope, after: Any) -> Operation[Page]:
        """Return the exported lines of jobs in the order of queueing."""
        now = yield from self._clock.read(saves=False)
        rows = yield _sql.page(scope, after=after or 0, limit=PAGE)
        return [JobLine.of(job_of(row, now)) for row in rows], pages.last_key(rows)

    def restore(self, scope: Scope, line: JobLine) -> Operation[bool]:
        """Append an exported job; return whether its key is new."""
        now = yield from self._clock.read(saves=True)
        values = msgspec.structs.asdict(line)
        del values["session"]  # the scope gives it
        due_at = values.pop("next_attempt_at")
        values["due"] = None if due_at is None else due_at - now.skew
        return bool((yield _sql.restore(scope.of(line.session), **values)))


def _new_values(job: NewJob, now: JobTime) -> Values:
    return {
        "kind": job.kind,
        "key": job.key,
        "ref_id": job.ref_id,
        "priority": job.priority,
        "max_attempts": job.max_attempts,
        "most_cost": job.most_cost,
        "delay": job.delay_seconds,
        "ticks": now.ticks,
        "wall": now.wall,
    }


def _recover(now: JobTime) -> Operation[int]:
    """Queue jobs again whose lease ran out, or note that they were tried often enough."""
    rows = yield _sql.recover(_EVERYBODY, why=queue.LOST, ticks=now.ticks, wall=now.wall)
    return len(rows)
