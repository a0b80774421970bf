"""queue: jobs for the background, kept in the store: what is known of one, and the calls on them.

queue: after records, before the stores, of which each has its own. A job that is claimed belongs to
who holds the token of that claim: every later claim has a fresh one, so that an attempt that was
given up for dead can neither finish nor overwrite. Leases are measured by the store's own clock.
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
"""What is told of a job whose lease ran out."""
LOOKED_AT = 64
"""Owners that a claim looks at to find those whose turn it is: many may have nothing but jobs that
wait for tomorrow. The next claim goes on behind them."""
SKIPPED_AT_ONCE = 500
"""Jobs over their quota that one transaction sets aside, so that others get their turn."""

JobState = Literal["queued", "running", "done", "failed", "skipped"]


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its way into the queue."""

    kind: str
    """Who does it: the name of a handler."""
    key: str
    """What it is about, such as the hash of a content: jobs of one kind and key are one job."""
    ref_id: str = ""
    """The stored content that it is about; with that it goes."""
    priority: int = 5
    max_attempts: int = 3
    """Then it has failed for good; 0: it is tried for ever."""
    most_cost: int = 0
    """Tokens that an attempt may cost at most: so many are debited before it begins. What costs
    nothing is never over a quota."""
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
    """What a worker asks for."""

    kinds: tuple[str, ...]
    """Those it can do; of equal priority, the first come first."""
    limit: int = 1
    lease_seconds: float = LEASE_SECONDS
    quotas: Quotas = Quotas()


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended, and what is written down with it in one transaction."""

    state: JobState
    attempts: int
    error: str = ""
    cost: int = 0
    delay_seconds: float | None = None
    """Until the next attempt; None: there is none."""
    summary: Summary | None = None
    gist: str = ""
    """What the ref of the job is from now on said to be: see `RefInfo.summary`."""

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
    """How much there is to be done, and what was spent."""

    depths: list[Depth]
    cost_today: int
    """Tokens debited today, of all users."""


class JobQueue(ABC):
    """The calls on jobs; each store has a queue that makes them true.

    A call happens whole or not at all, and what it returned from is durable. Those on a claimed job
    return whether it was still the caller's: if not, nothing was changed.
    """

    @abstractmethod
    async def enqueue(self, scope: Scope, jobs: Sequence[NewJob]) -> int:
        """Add jobs for `scope`; how many were new: a job of a kind and key is there once."""

    @abstractmethod
    async def claim(self, claim: Claim) -> list[Job]:
        """Take jobs that are due, by priority; those of one owner by how long they are.

        Of one kind and priority, the users and workspaces that have any take turns: a claim goes on
        behind whom the last one of this process served, so that ten thousand jobs of one do not
        hold back another's first.

        What a job may cost is debited first; one that has no room left in its quotas is skipped,
        with the reason, until the next day.
        """

    @abstractmethod
    async def renew(self, jobs: Sequence[Job], lease_seconds: float) -> set[int]:
        """Hold claimed jobs for longer: the ids of those that are still the caller's."""

    @abstractmethod
    async def settle(self, job: Job, ending: Ending) -> bool:
        """Write down how an attempt ended, and refund what it did not cost; twice is once."""

    @abstractmethod
    async def recover(self) -> int:
        """Queue jobs again whose lease ran out; how many. What they were debited stays spent."""

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
        """The job is done; what it made is kept with that. A job that recurs is queued again."""
        rules.check_gist(gist)
        is_over = again_seconds is None
        return await self.settle(
            job,
            Ending(
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
        ending = Ending(
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
        ending = Ending(
            state="skipped",
            attempts=job.attempts - 1,
            error=why,
            cost=cost,
            delay_seconds=delay_seconds,
        )
        return await self.settle(job, ending)

    async def release(self, job: Job, *, cost: int = 0) -> bool:
        """Hand a job back; that is no attempt. `cost` is what it may have cost so far."""
        ending = Ending(state="queued", attempts=job.attempts - 1, cost=cost, delay_seconds=0.0)
        return await self.settle(job, ending)

    async def close(self) -> None:  # noqa: B027 - most queues have nothing to let go
        """Let go of what the queue holds beside its store."""


class Bell:
    """Wakes those who wait in this process; what rang while nobody waited wakes the next."""

    def __init__(self) -> None:
        self._rang = False
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        """Wake everyone, in whatever loop they wait."""
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
