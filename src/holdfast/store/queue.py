"""Background jobs in the store: the record of a job, and the calls on jobs.

A claimed job belongs to the holder of the claim's token: every later claim has a new one, so that
an attempt that lost its lease can neither finish nor overwrite. Leases use the store's clock.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import msgspec

from holdfast.errors import StoreError
from holdfast.store import rules
from holdfast.store.records import Summary
from holdfast.store.scope import Scope

PRIORITIES = range(10)
"""The higher is done first."""
LEASE_SECONDS = 60.0
IDLE_SECONDS = 5.0
"""How often an idle worker looks by itself (004-34)."""
LOST = "the worker was lost"
"""The error of a job whose lease expired."""
LOOKED_AT = 64
"""Owners that a claim reads to find the next one in turn: many may only have jobs for tomorrow.
The next claim continues after them."""
SKIPPED_AT_ONCE = 500
"""Jobs over their quota that one transaction sets aside, so that others get their turn."""

JobState = Literal["queued", "running", "done", "failed", "skipped"]


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its way into the queue."""

    kind: str
    """The name of its handler."""
    key: str
    """Its subject, such as the hash of a content: jobs of one kind and key are one job."""
    ref_id: str = ""
    """The stored content of the job, with which it is removed."""
    priority: int = 5
    max_attempts: int = 3
    """Then it has failed for good; 0: it is tried for ever."""
    most_cost: int = 0
    """Maximum tokens of an attempt, which are debited before it begins. A job without cost is
    never over a quota."""
    delay_seconds: float = 0.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the queue knows it."""

    id: int
    scope: Scope
    """Whose it is, and of which session."""
    kind: str
    key: str
    ref_id: str
    priority: int
    state: JobState
    attempts: int
    max_attempts: int
    most_cost: int
    cost: int
    """Tokens of all attempts together; of one that was lost, the most that it may have cost."""
    error: str
    """Why it failed or was skipped, without content."""
    created_at: float
    next_attempt_at: float | None
    """None: never, or it runs."""
    completed_at: float | None
    token: str = ""
    """Of this claim; empty if the job was only looked at."""

    @property
    def is_spent(self) -> bool:
        """Whether this attempt was the last."""
        return 0 < self.max_attempts <= self.attempts

    def __repr__(self) -> str:
        return f"<Job {self.id}, {self.kind}, {self.state}>"


SUMMARY_TOKENS = 120
"""Maximum tokens that one job may cost, and of the summary it makes (004-45): a caller who wants
more about a content opens it. Read as an attribute of this module, so that tests can lower it."""


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that jobs may cost, for each user and workspace (004-45)."""

    session: int = 5_000
    day: int = 50_000
    artifact: int = SUMMARY_TOKENS
    """For one job."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a worker's claim."""

    kinds: tuple[str, ...]
    """Those it can do; of equal priority, the first come first."""
    limit: int = 1
    lease_seconds: float = LEASE_SECONDS
    quotas: Quotas = Quotas()


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an attempt, and the records written with it in one transaction."""

    state: JobState
    attempts: int
    error: str = ""
    cost: int = 0
    delay_seconds: float | None = None
    """Until the next attempt; None: there is none."""
    summary: Summary | None = None
    gist: str = ""
    """The new description of the job's ref: see `RefInfo.summary`."""

    def __repr__(self) -> str:
        return f"<Ending {self.state}, attempt {self.attempts}>"


class Depth(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one kind that are not over, in one state."""

    kind: str
    state: JobState
    jobs: int
    waiting_seconds: float
    """How long the one that could have been done first has been due; 0 if none is."""


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The number of jobs, and their cost."""

    depths: list[Depth]
    cost_today: int
    """Tokens debited today, of all users."""


class JobQueue(ABC):
    """The calls on jobs, implemented by each store.

    A call is atomic, and durable when it returns. Calls on a claimed job return whether it still
    belonged to the caller: if not, nothing was changed.
    """

    @abstractmethod
    async def enqueue(self, scope: Scope, jobs: Sequence[NewJob]) -> int:
        """Add jobs for `scope`; how many were new: a job of a kind and key is there once."""

    @abstractmethod
    async def claim(self, claim: Claim) -> list[Job]:
        """Take due jobs, by priority, and for one owner by due time.

        Within one kind and priority, users and workspaces take turns: a claim continues after the
        last owner served by this process, so that ten thousand jobs of one owner do not delay
        another's first.

        The maximum cost of a job is debited first; a job without room in its quotas is skipped,
        with the reason, until the next day.
        """

    @abstractmethod
    async def renew(self, jobs: Sequence[Job], lease_seconds: float) -> set[int]:
        """Renew the leases of claimed jobs; return the ids that still belong to the caller."""

    @abstractmethod
    async def settle(self, job: Job, ending: AttemptEnd) -> bool:
        """Record the end of an attempt, and refund unused tokens; repeated calls do nothing."""

    @abstractmethod
    async def recover(self) -> int:
        """Queue jobs with expired leases again, without a refund; return their number."""

    @abstractmethod
    async def latest(
        self, scope: Scope | None, *, kind: str = "", state: str = "", limit: int = 100
    ) -> list[Job]:
        """The jobs queued last; of everyone, if there is no scope."""

    @abstractmethod
    async def figures(self) -> QueueFigures:
        """How much there is to be done, of everyone."""

    @abstractmethod
    async def spent(self, scope: Scope) -> dict[str, int]:
        """The tokens debited, by quota: `day 2026-01-31`, `session …`."""

    @abstractmethod
    async def forget_finished(self, age_seconds: float) -> int:
        """Remove jobs that ended so long ago, of everyone; how many."""

    @abstractmethod
    async def wait(self, seconds: float) -> None:
        """Return once jobs may have been queued, or the time is over."""

    async def finish(
        self,
        job: Job,
        *,
        cost: int = 0,
        summary: Summary | None = None,
        gist: str = "",
        again_seconds: float | None = None,
    ) -> bool:
        """Mark the job as done and store its result. A recurring job is queued again."""
        rules.check_gist(gist)
        is_over = again_seconds is None
        return await self.settle(
            job,
            AttemptEnd(
                state="done" if is_over else "queued",
                attempts=job.attempts if is_over else 0,
                cost=cost,
                delay_seconds=again_seconds,
                summary=summary,
                gist=gist,
            ),
        )

    async def fail(
        self, job: Job, why: str, *, cost: int = 0, delay_seconds: float | None = None
    ) -> bool:
        """The attempt failed; the next is after the delay, if there is one."""
        ending = AttemptEnd(
            state="failed",
            attempts=job.attempts,
            error=why,
            cost=cost,
            delay_seconds=delay_seconds,
        )
        return await self.settle(job, ending)

    async def skip(
        self, job: Job, why: str, *, cost: int = 0, delay_seconds: float | None = None
    ) -> bool:
        """The job is not to be done, or not before the delay; that is no attempt."""
        ending = AttemptEnd(
            state="skipped",
            attempts=job.attempts - 1,
            error=why,
            cost=cost,
            delay_seconds=delay_seconds,
        )
        return await self.settle(job, ending)

    async def release(self, job: Job, *, cost: int = 0) -> bool:
        """Return a job to the queue, without an attempt. `cost` is its maximum cost so far."""
        ending = AttemptEnd(state="queued", attempts=job.attempts - 1, cost=cost, delay_seconds=0.0)
        return await self.settle(job, ending)

    async def close(self) -> None:  # noqa: B027 - most queues have nothing to let go
        """Release the queue's own resources."""


class Bell:
    """Wakes those who wait in this process; what rang while nobody waited wakes the next."""

    def __init__(self) -> None:
        self._rang = False
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        """Wake all waiting code, in any loop."""
        self._rang = True
        for waiting in list(self._waiting):
            waiting.get_loop().call_soon_threadsafe(_wake, waiting)

    async def wait(self, seconds: float) -> None:
        """Return once it rings, or the time is over."""
        if not self._rang:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await asyncio.wait({waiting}, timeout=seconds)
            finally:
                self._waiting.discard(waiting)
        self._rang = False


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def check(jobs: Sequence[NewJob]) -> None:
    """Raise unless jobs can be queued."""
    for job in jobs:
        rules.check_key(job.kind)
        rules.check_key(job.key)
        if job.priority not in PRIORITIES or min(job.max_attempts, job.most_cost) < 0:
            raise StoreError(
                "a job has a priority, attempts or a cost that there is not",
                where=f"job {job.kind}",
                fix="Give a priority from 0 to 9, and nothing below zero.",
            )


def places(claim: Claim) -> list[tuple[str, int]]:
    """Where to look for jobs, in this order: kind and priority."""
    return [(kind, priority) for priority in reversed(PRIORITIES) for kind in claim.kinds]


Turns = dict[tuple[str, int], tuple[str, str]]
"""The workspace and user up to whom claims have come, by kind and priority."""


def day_quota(day: str) -> str:
    """The name of a day's quota."""
    return f"day {day}"


def session_quota(session: str) -> str:
    """The name of a session's quota."""
    return f"session {session}"


def over_quota(which: str) -> str:
    """Why a job is skipped (004-35)."""
    return f"quota_exceeded: {which}"
