"""queue: the queue on PostgreSQL: workers on many machines, woken when a job is queued.

after jobs, before store.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from holdfast.store import queue
from holdfast.store.operations import summaries
from holdfast.store.postgres import jobs
from holdfast.store.postgres.database import Connection, Database
from holdfast.store.postgres.listening import Listening
from holdfast.store.queue import (
    Bell,
    Claim,
    Depth,
    Ending,
    Job,
    JobQueue,
    NewJob,
    QueueFigures,
    Quotas,
)
from holdfast.store.scope import Scope

_FORGOTTEN_AT_ONCE = 5_000
_LOOKS = 3
"""How often owners are looked for in one claim: other workers may take all that these have."""
_NOTHING_MADE = (None,) * 7
"""In the place of a summary."""


class PostgresQueue(JobQueue):
    """Keeps jobs in the database of the store."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._bell = Bell()
        self._turns: queue.Turns = {}
        self._listening = Listening(database, "holdfast_jobs", self._bell.ring)

    @property
    def _now(self) -> float | None:
        """The time that a test has set; else the server's counts."""
        return None if self._clock is time.time else self._clock()

    async def enqueue(self, scope: Scope, jobs_: Sequence[NewJob]) -> int:
        """Add jobs."""
        queue.check(jobs_)
        now, who = self._now, (scope.workspace, scope.user, scope.session)
        rows = [
            (
                *(now, *who, job.kind, job.key, job.ref_id, job.priority, job.max_attempts),
                *(job.most_cost, job.delay_seconds),
            )
            for job in jobs_
        ]

        async def work(connection: Connection) -> int:
            new = await connection.fetchmany(jobs.ADD, rows)
            await connection.execute(jobs.NOTIFY)
            return len(new)

        return await self._database.transact(work)

    async def claim(self, claim: Claim) -> list[Job]:
        """Take jobs that are due."""
        claimed = await self._claim(claim)
        if not claimed and await self.recover():
            claimed = await self._claim(claim)
        return claimed

    async def _claim(self, claim: Claim) -> list[Job]:
        """Take jobs that are due, in as many goes as there are jobs to be skipped."""
        claimed: list[Job] = []
        while True:
            rest = msgspec.structs.replace(claim, limit=claim.limit - len(claimed))
            work = partial(_claim, rest, self._now, self._turns)
            part, skipped = await self._database.transact(work)
            claimed += part
            if not skipped or len(claimed) >= claim.limit:
                return claimed

    async def renew(self, jobs_: Sequence[Job], lease_seconds: float) -> set[int]:
        """Hold claimed jobs for longer."""
        ids, tokens = [job.id for job in jobs_], [job.token for job in jobs_]
        rows = await self._database.fetch(jobs.RENEW, self._now, lease_seconds, ids, tokens)
        return {row["id"] for row in rows}

    async def settle(self, job: Job, ending: Ending) -> bool:
        """Write down how an attempt ended; asked twice, because the answer was lost, it is once."""
        summary = ending.summary
        summary_values = (
            _NOTHING_MADE if summary is None else tuple(summaries.values_of(summary).values())
        )
        rows = await self._database.fetch(
            jobs.SETTLE,
            *(self._now, job.id, job.token, ending.state, ending.attempts, ending.error),
            *(ending.cost, ending.delay_seconds, *summary_values, ending.gist),
        )
        if ending.delay_seconds is not None:
            self._bell.ring()
        return bool(rows[0]["settled"])

    async def recover(self) -> int:
        """Queue jobs again whose lease ran out."""
        return len(await self._database.fetch(jobs.RECOVER, self._now, queue.LOST))

    async def latest(
        self, scope: Scope | None, *, kind: str = "", state: str = "", limit: int = 100
    ) -> list[Job]:
        """The jobs queued last."""
        who = (None, None, "") if scope is None else (scope.workspace, scope.user, scope.session)
        rows = await self._database.fetch(jobs.LATEST, *who, kind, state, max(limit, 0))
        return [jobs.job_of(row) for row in rows]

    async def figures(self) -> QueueFigures:
        """How much there is to be done."""
        depths = [Depth(**row) for row in await self._database.fetch(jobs.FIGURES, self._now)]
        (row,) = await self._database.fetch(jobs.COST, self._now)
        return QueueFigures(depths=depths, cost_today=row["cost"])

    async def spent(self, scope: Scope) -> dict[str, int]:
        """The tokens debited, by quota."""
        rows = await self._database.fetch(jobs.SPENT, scope.workspace, scope.user)
        return {row["name"]: row["spent"] for row in rows}

    async def forget_finished(self, age_seconds: float) -> int:
        """Remove jobs that ended so long ago, in parts."""
        forgotten, asked = 0, (age_seconds, _FORGOTTEN_AT_ONCE)
        while part := await self._database.fetch(jobs.FORGET_FINISHED, self._now, *asked):
            forgotten += len(part)
        return forgotten

    async def wait(self, seconds: float) -> None:
        """Return once jobs may have been queued; without a server, when the time is over."""
        if await self._listening.begin():
            return  # what was queued before this was listened for is found by looking once more
        await self._bell.wait(seconds)

    async def close(self) -> None:
        """Hear no more."""
        await self._listening.end()


async def _claim(
    claim: Claim, now: float | None, turns: queue.Turns, connection: Connection
) -> tuple[list[Job], int]:
    """Take jobs that are due; and how many of them had to be skipped."""
    rows = await _taken(claim, now, turns, connection)
    claimed, skipped = [], 0
    for row in sorted(rows, key=_order_of_debits):
        job = jobs.job_of(row, is_claimed=True)
        if why := await _debit(connection, job, claim.quotas, row["debited_on"]):
            await connection.execute(jobs.SKIP, now, job.id, why)
            skipped += 1
        else:
            claimed.append(job)
    return sorted(claimed, key=lambda job: (-job.priority, job.id)), skipped


async def _taken(
    claim: Claim, now: float | None, turns: queue.Turns, connection: Connection
) -> list[Any]:
    """Jobs that are due, place by place, of each owner there as many as of the others."""
    places = queue.places(claim)
    kinds, priorities = zip(*places, strict=True)
    how = (now, secrets.token_hex(16), claim.lease_seconds)
    rows: list[Any] = []
    for _ in range(_LOOKS):
        last = (turns.get(place, (None, None)) for place in places)
        asked = (now, kinds, priorities, *zip(*last, strict=True), claim.limit, queue.LOOKED_AT)
        looks = await connection.fetch(jobs.IN_TURN, *asked)
        for number, at_place in groupby(looks, key=itemgetter("place")):
            place = places[number - 1]
            behind, *owners = [(look["workspace"], look["username"]) for look in at_place]
            served = owners[: claim.limit - len(rows)]
            if served:
                turns[place] = behind if served == owners else served[-1]
            while served and len(rows) < claim.limit:
                shares = _shares(served, claim.limit - len(rows))
                part = await connection.fetch(jobs.CLAIM, *how, *place, *zip(*shares, strict=True))
                taken = Counter((row["workspace"], row["username"]) for row in part)
                # Who had less than a share has no more, or another worker is at it.
                served = [(name, user) for name, user, most in shares if taken[name, user] == most]
                rows += part
        if rows or not looks:
            break
    return rows


def _shares(owners: Sequence[tuple[str, str]], jobs_: int) -> list[tuple[str, str, int]]:
    """As many jobs in all, for each owner the same or one more; those who get none left out."""
    each, more = divmod(jobs_, len(owners))
    return [
        (*owner, each + (number < more))
        for number, owner in enumerate(owners)
        if each or number < more
    ]


def _order_of_debits(row: Any) -> tuple[Any, ...]:
    """First whose they are: quotas are locked until the transaction ends, by all in one order."""
    owner = (row["workspace"], row["username"], row["session"])
    return (*owner, -row["priority"], row["was_due"], row["id"])


async def _debit(connection: Connection, job: Job, quotas: Quotas, today: str) -> str:
    """Debit what a job may cost, or say which quota has no room for it."""
    if not job.most_cost:
        return ""
    if job.most_cost > quotas.artifact:
        return queue.over_quota("artifact")
    who = (job.scope.workspace, job.scope.user)
    limits = [(queue.day_quota(today), quotas.day)]
    if job.scope.session:
        limits.append((queue.session_quota(job.scope.session), quotas.session))
    debited: list[str] = []
    for name, limit in limits:
        fits = job.most_cost <= limit and await connection.fetch(
            jobs.DEBIT, *who, name, job.most_cost, limit
        )
        if not fits:
            for earlier in debited:
                await connection.execute(jobs.CREDIT, *who, earlier, job.most_cost)
            return queue.over_quota(name.partition(" ")[0])
        debited.append(name)
    return ""
