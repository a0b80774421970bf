"""The model of the job queue."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from holdfast.store import queue, rules
from holdfast.store.queue import (
    AttemptEnd,
    Bell,
    Claim,
    Depth,
    Job,
    JobQueue,
    NewJob,
    QueueFigures,
)
from holdfast.store.records import Summary
from holdfast.store.scope import Scope
from holdfast.store.transfer import JobLine

_DAY_SECONDS = 86_400


class Moment(NamedTuple):
    """Now, on two clocks."""

    wall: float
    """Seconds since 1970: for days, and for people."""
    ticks: float
    """Seconds that nobody sets: for leases and delays."""

    @property
    def today(self) -> str:
        """The day of quotas, in UTC."""
        return rules.day_of(self.wall)

    @property
    def tomorrow(self) -> float:
        """The ticks at which the next day begins."""
        return self.ticks + _DAY_SECONDS - self.wall % _DAY_SECONDS

    @property
    def skew(self) -> float:
        """What makes the time of day out of ticks."""
        return self.wall - self.ticks


@dataclass(eq=False)
class Row:
    """A job, with what only its store needs to know."""

    job: Job
    due: float | None
    """The ticks from which it can be claimed."""
    lease_until: float = 0.0
    debited_on: str = ""


class ModelQueue(JobQueue):
    """Keeps jobs in dictionaries."""

    def __init__(
        self,
        moment: Callable[[], Moment],
        keep: Callable[[Scope, Summary], None],
        retell: Callable[[Scope, str, str], None],
    ) -> None:
        self._moment = moment
        self._keep = keep
        self._retell = retell
        self._rows: dict[int, Row] = {}
        self._last = 0
        self._turns: queue.Turns = {}
        self._spent: dict[tuple[str, str], dict[str, int]] = {}
        self._bell = Bell()

    async def enqueue(self, scope: Scope, jobs: Sequence[NewJob]) -> int:
        """Add jobs."""
        queue.check(jobs)
        now = self._moment()
        new = sum(self._add(scope, job, now) for job in jobs)
        self._bell.ring()
        return new

    def _add(self, scope: Scope, new: NewJob, now: Moment) -> bool:
        if self._has(scope, new.kind, new.key):
            return False
        due = now.ticks + new.delay_seconds
        fields = msgspec.structs.asdict(new)
        del fields["delay_seconds"]
        self._insert(
            Job(
                **fields,
                id=self._last + 1,
                scope=scope,
                state="queued",
                attempts=0,
                cost=0,
                error="",
                created_at=now.wall,
                next_attempt_at=due + now.skew,
                completed_at=None,
            ),
            due,
        )
        return True

    def _has(self, scope: Scope, kind: str, key: str) -> bool:
        name = (_owner(scope), kind, key)
        return any(
            (_owner(row.job.scope), row.job.kind, row.job.key) == name for row in self.rows()
        )

    def of(self, scope: Scope) -> list[Job]:
        """The jobs of a user and workspace, in the order they were queued."""
        return [row.job for row in self.rows() if _owner(row.job.scope) == _owner(scope)]

    def restore(self, scope: Scope, line: JobLine) -> bool:
        """Append an exported job; return whether its kind and key are new."""
        if self._has(scope, line.kind, line.key):
            return False
        fields = msgspec.structs.asdict(line)
        owner = scope.of(fields.pop("session"))
        due = None
        if line.next_attempt_at is not None:
            due = line.next_attempt_at - self._moment().skew
        self._insert(Job(id=self._last + 1, scope=owner, **fields), due)
        return True

    def _insert(self, job: Job, due: float | None) -> None:
        self._last = job.id
        self._rows[job.id] = Row(job, due)

    def rows(self) -> Iterator[Row]:
        """All jobs, in the order they were queued."""
        return iter(self._rows.values())

    def _drop(self, is_gone: Callable[[Job], bool]) -> int:
        gone = [row.job.id for row in self.rows() if is_gone(row.job)]
        for id_ in gone:
            del self._rows[id_]
        return len(gone)

    async def claim(self, claim: Claim) -> list[Job]:
        """Take jobs that are due; if there are none, those whose lease ran out."""
        claimed = self._claim(claim)
        if not claimed and self._recover():
            return self._claim(claim)
        return claimed

    def _claim(self, claim: Claim) -> list[Job]:
        now, token = self._moment(), secrets.token_hex(16)
        claimed: list[Job] = []
        for place in queue.places(claim):
            for row in self._in_turn(place, now):
                if len(claimed) >= claim.limit:
                    return claimed
                self._turns[place] = _owner(row.job.scope)
                if why := self._debit(row, claim.quotas, now):
                    self._change(row, now, due=now.tomorrow, state="skipped", error=why)
                    continue
                row.lease_until = now.ticks + claim.lease_seconds
                attempts = row.job.attempts + 1
                self._change(row, now, state="running", attempts=attempts, token=token)
                claimed.append(row.job)
        return claimed

    def _in_turn(self, place: tuple[str, int], now: Moment) -> Iterator[Row]:
        """The jobs of a place that are due: one of each owner, then the next of each."""
        due = [
            row
            for row in self.rows()
            if (row.job.kind, row.job.priority) == place
            and row.due is not None
            and row.due <= now.ticks
        ]
        by_owner: dict[tuple[str, str], list[Row]] = {}
        for row in sorted(due, key=lambda row: (row.due, row.job.id)):
            by_owner.setdefault(_owner(row.job.scope), []).append(row)
        first = next(iter(by_owner), ("", ""))  # the owner that has waited longest
        last = self._turns.get(place)
        owners = sorted(
            by_owner, key=lambda owner: (owner < first if last is None else owner <= last, owner)
        )
        for jobs in zip_longest(*(by_owner[owner] for owner in owners)):
            yield from filter(None, jobs)

    def _change(self, row: Row, now: Moment, *, due: float | None = None, **what: object) -> None:
        row.due = due
        next_attempt_at = None if due is None else due + now.skew
        row.job = msgspec.structs.replace(row.job, next_attempt_at=next_attempt_at, **what)

    def _debit(self, row: Row, quotas: queue.Quotas, now: Moment) -> str:
        """Debit the maximum cost of a job, or return the quota without room for it."""
        job = row.job
        if not job.most_cost:
            return ""
        if job.most_cost > quotas.artifact:
            return queue.over_quota("artifact")
        spent = self._spent.setdefault(_owner(job.scope), {})
        limits = {queue.day_quota(now.today): quotas.day}
        if job.scope.session:
            limits[queue.session_quota(job.scope.session)] = quotas.session
        for name, limit in limits.items():
            if spent.get(name, 0) + job.most_cost > limit:
                return queue.over_quota(name.partition(" ")[0])
        for name in limits:
            spent[name] = spent.get(name, 0) + job.most_cost
        row.debited_on = now.today
        return ""

    def _held(self, job: Job) -> Row | None:
        row = self._rows.get(job.id)
        held = row is not None and row.job.state == "running" and row.job.token == job.token
        return row if held else None

    async def renew(self, jobs: Sequence[Job], lease_seconds: float) -> set[int]:
        """Hold claimed jobs for longer."""
        rows = [row for row in map(self._held, jobs) if row is not None]
        for row in rows:
            row.lease_until = self._moment().ticks + lease_seconds
        return {row.job.id for row in rows}

    async def settle(self, job: Job, ending: AttemptEnd) -> bool:
        """Write down how an attempt ended."""
        row, now = self._held(job), self._moment()
        if row is None:
            last = self._rows.get(job.id)
            return last is not None and (last.job.token, last.job.state) == (
                job.token,
                ending.state,
            )
        spent = self._spent.get(_owner(job.scope), {})
        names = (queue.day_quota(row.debited_on), queue.session_quota(job.scope.session))
        for name in names:
            if job.most_cost and name in spent:
                spent[name] += ending.cost - job.most_cost
        if ending.summary is not None:
            self._keep(job.scope, ending.summary)
        if ending.gist:
            self._retell(job.scope, job.ref_id, ending.gist)
        delay = ending.delay_seconds
        self._change(
            row,
            now,
            due=None if delay is None else now.ticks + delay,
            state=ending.state,
            attempts=ending.attempts,
            error=ending.error,
            cost=row.job.cost + ending.cost,
            completed_at=now.wall,
        )
        self._bell.ring()
        return True

    async def recover(self) -> int:
        """Queue jobs again whose lease ran out."""
        return self._recover()

    def _recover(self) -> int:
        now = self._moment()
        over = [
            row
            for row in self.rows()
            if row.job.state == "running" and row.lease_until <= now.ticks
        ]
        for row in over:
            job = row.job
            self._change(
                row,
                now,
                due=None if job.is_spent else now.ticks,
                state="failed" if job.is_spent else "queued",
                error=queue.LOST,
                cost=job.cost + job.most_cost,
                completed_at=now.wall,
                token="",
            )
        return len(over)

    async def latest(
        self, scope: Scope | None, *, kind: str = "", state: str = "", limit: int = 100
    ) -> list[Job]:
        """The jobs queued last."""
        jobs = [
            msgspec.structs.replace(row.job, token="")
            for row in reversed(self._rows.values())
            if (scope is None or _owner(scope) == _owner(row.job.scope))
            and (scope is None or scope.session in ("", row.job.scope.session))
            and kind in ("", row.job.kind)
            and state in ("", row.job.state)
        ]
        return jobs[: max(limit, 0)]

    async def figures(self) -> QueueFigures:
        """How much there is to be done."""
        now = self._moment()
        waits: dict[tuple[str, queue.JobState], list[float]] = {}
        for row in self.rows():
            if row.due is not None or row.job.state == "running":
                waited = 0.0 if row.due is None else now.ticks - row.due
                waits.setdefault((row.job.kind, row.job.state), []).append(waited)
        depths = [
            Depth(kind=kind, state=state, jobs=len(each), waiting_seconds=max(0.0, *each, 0.0))
            for (kind, state), each in sorted(waits.items())
        ]
        today = queue.day_quota(now.today)
        cost = sum(spent.get(today, 0) for spent in self._spent.values())
        return QueueFigures(depths=depths, cost_today=cost)

    async def spent(self, scope: Scope) -> dict[str, int]:
        """The tokens debited, by quota."""
        return dict(sorted(self._spent.get(_owner(scope), {}).items()))

    def drop_of_ref(self, scope: Scope, ref_id: str) -> None:
        """Remove the jobs about a content that is removed without a trace."""
        self._drop(lambda job: (_owner(job.scope), job.ref_id) == (_owner(scope), ref_id))

    def drop_of_session(self, scope: Scope) -> None:
        """Remove the jobs of a session, and their cost."""
        self._drop(lambda job: job.scope == scope)
        self._spent.get(_owner(scope), {}).pop(queue.session_quota(scope.session), None)

    def erase(self, scope: Scope) -> int:
        """Remove the jobs of a user and workspace, and their cost; return their number."""
        self._spent.pop(_owner(scope), None)
        return self._drop(lambda job: _owner(job.scope) == _owner(scope))

    async def forget_finished(self, age_seconds: float) -> int:
        """Remove jobs that ended so long ago."""
        cutoff, before = self._moment().wall - age_seconds, len(self._rows)
        over = {
            row.job.id
            for row in self.rows()
            if row.due is None
            and row.job.state != "running"
            and row.job.completed_at is not None
            and row.job.completed_at <= cutoff
        }
        self._drop(lambda job: job.id in over)
        return before - len(self._rows)

    async def wait(self, seconds: float) -> None:
        """Return once jobs may have been queued."""
        await self._bell.wait(seconds)


def _owner(scope: Scope) -> tuple[str, str]:
    return (scope.workspace, scope.user)
