"""Claims: the selection of jobs and their owners, and the debited tokens."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from holdfast.store import queue
from holdfast.store.queue import Claim, Job, Quotas, Turns
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Values, load

_ATTEMPTS = 3
"""How often one claim looks for owners: other workers may take all jobs of those it has found."""
_WIDTH = 17
"""Columns of a job."""
_EVERYBODY = Scope()
"""For statements that are about no scope."""

Place = tuple[str, int]
"""Kind and priority."""
Owner = tuple[str, str]
"""Workspace and user."""

_sql = load("jobs")


class JobTime(NamedTuple):
    """The time of an operation, on two clocks; None if the database uses its own."""

    wall: float | None
    """Seconds since 1970: for days, and for people."""
    ticks: float | None
    """Seconds of a clock that nobody sets: for leases and delays."""

    @property
    def skew(self) -> float:
        """Seconds to add to ticks for the time of day."""
        return 0.0 if self.wall is None or self.ticks is None else self.wall - self.ticks


class Lease(NamedTuple):
    """The values that a claim writes into its jobs."""

    token: str
    seconds: float
    now: JobTime

    @property
    def values(self) -> Values:
        """The values of the statements that claim."""
        return {"token": self.token, "seconds": self.seconds, **self.now._asdict()}


class OwnersAtPlace(NamedTuple):
    """The owners whose turn it is at a place."""

    place: Place
    last: Owner
    """The last owner looked at."""
    owners: list[Owner]


class JobSelection(ABC):
    """How a database finds and claims the jobs of owners in turn."""

    skipped_at_once: int
    """Jobs over their quota that one transaction sets aside, so that others get their turn."""

    @abstractmethod
    def owners(
        self, places: Sequence[Place], turns: Turns, limit: int, now: JobTime
    ) -> Operation[list[OwnersAtPlace]]:
        """Return whose turn it is, for each place that has jobs which are due."""

    @abstractmethod
    def claim(
        self, place: Place, shares: Sequence[tuple[Owner, int]], lease: Lease
    ) -> Operation[list[Row]]:
        """Take as many jobs of each owner as its share.

        A row ends with the day of its debit, and what orders the jobs of an owner by their age.
        """


def job_of(row: Row, now: JobTime, token: str = "") -> Job:
    """Return the job of a row; `token` is known only to the caller who claims it."""
    id_, workspace, owner, session, *middle, due_at, completed_at = row
    kind, key, ref_id, priority, state, attempts, max_attempts, *columns = middle
    most_cost, cost, error, created_at = columns
    return Job(
        id=id_,
        scope=Scope(owner, workspace, session),
        kind=kind,
        key=key,
        ref_id=ref_id,
        priority=priority,
        state=state,
        attempts=attempts,
        max_attempts=max_attempts,
        most_cost=most_cost,
        cost=cost,
        error=error,
        created_at=created_at,
        next_attempt_at=None if due_at is None else due_at + now.skew,
        completed_at=completed_at,
        token=token,
    )


def take(
    claim: Claim, selection: JobSelection, turns: Turns, now: JobTime
) -> Operation[tuple[list[Job], bool]]:
    """Take jobs that are due, and set aside those over their quota."""
    lease = Lease(secrets.token_hex(16), claim.lease_seconds, now)
    claimed: list[Job] = []
    skipped = 0
    while True:
        rows = yield from _claimed_rows(claim, claim.limit - len(claimed), selection, turns, lease)
        skipped_before = skipped
        for row in sorted(rows, key=_debit_order):
            job = job_of(row[:_WIDTH], now, lease.token)
            if why := (yield from _debit(job, claim.quotas, row[_WIDTH])):
                yield _sql.skip(_EVERYBODY, id=job.id, why=why, ticks=now.ticks, wall=now.wall)
                skipped += 1
            else:
                claimed.append(job)
        if len(claimed) >= claim.limit or skipped == skipped_before:
            return sorted(claimed, key=lambda job: (-job.priority, job.id)), False
        if skipped >= selection.skipped_at_once:
            return sorted(claimed, key=lambda job: (-job.priority, job.id)), True


def _claimed_rows(
    claim: Claim, limit: int, selection: JobSelection, turns: Turns, lease: Lease
) -> Operation[list[Row]]:
    """Take due jobs place by place, of each owner there as many as of the others."""
    rows: list[Row] = []
    for _ in range(_ATTEMPTS):
        places = yield from selection.owners(queue.places(claim), turns, limit, lease.now)
        for place, last, owners in places:
            served = owners[: limit - len(rows)]
            if served:
                turns[place] = last if served == owners else served[-1]
            while served and len(rows) < limit:
                shares = list(_shares(served, limit - len(rows)))
                part = yield from selection.claim(place, shares, lease)
                counts = Counter((row[1], row[2]) for row in part)
                # An owner with less than its share has no more, or another worker is at it.
                served = [owner for owner, share in shares if counts[owner] == share]
                rows += part
        if rows or not places:
            break
    return rows


def _shares(owners: Sequence[Owner], jobs: int) -> Iterator[tuple[Owner, int]]:
    """Divide a number of jobs among owners, one more for the first; none get no entry."""
    each, more = divmod(jobs, len(owners))
    for number, owner in enumerate(owners):
        if share := each + (number < more):
            yield owner, share


def _debit_order(row: Row) -> tuple[Any, ...]:
    """Sort by owner first: quotas are locked until the transaction ends, by all in one order."""
    return (*row[1:4], -row[7], row[_WIDTH + 1], row[0])


def _debit(job: Job, quotas: Quotas, today: str) -> Operation[str]:
    """Debit the maximum cost of a job, or return the quota without room for it."""
    if not job.most_cost:
        return ""
    if job.most_cost > quotas.artifact:
        return queue.over_quota("artifact")
    limits = [(queue.day_quota(today), quotas.day)]
    if job.scope.session:
        limits.append((queue.session_quota(job.scope.session), quotas.session))
    debited: list[str] = []
    for name, limit in limits:
        fits = job.most_cost <= limit and (
            yield _sql.debit(job.scope, name=name, cost=job.most_cost, limit=limit)
        )
        if not fits:
            for earlier in debited:
                yield _sql.refund(job.scope, name=earlier, cost=job.most_cost)
            return queue.over_quota(name.partition(" ")[0])
        debited.append(name)
    return ""


class OneByOne(JobSelection):
    """Selection by several statements, for SQLite: no other process writes meanwhile."""

    skipped_at_once = queue.SKIPPED_AT_ONCE

    def owners(
        self, places: Sequence[Place], turns: Turns, limit: int, now: JobTime
    ) -> Operation[list[OwnersAtPlace]]:
        """Return whose turn it is, for each place that has jobs which are due."""
        kinds = list(dict.fromkeys(kind for kind, _ in places))
        priorities = sorted({priority for _, priority in places})
        rows = yield _sql.due_places(
            _EVERYBODY, kinds=kinds, priorities=priorities, ticks=now.ticks
        )
        owner_places: list[OwnersAtPlace] = []
        missing = limit
        for number, priority in rows:
            place = (kinds[number], priority)
            in_turn = yield from _owners_at(place, turns.get(place), missing, now)
            owner_places.append(in_turn)
            missing -= len(in_turn.owners)
            if missing <= 0:
                break
        return owner_places

    def claim(
        self, place: Place, shares: Sequence[tuple[Owner, int]], lease: Lease
    ) -> Operation[list[Row]]:
        """Take as many jobs of each owner as its share, one after the other."""
        kind, priority = place
        claimed_rows: list[Row] = []
        for (workspace, user), share in shares:
            for _ in range(share):
                rows = yield _sql.claim_oldest(
                    Scope(user, workspace),
                    kind=kind,
                    priority=priority,
                    **lease.values,
                )
                if not rows:
                    break
                claimed_rows.append((*rows[0], len(claimed_rows)))
        return claimed_rows


def _owners_at(
    place: Place, last: Owner | None, limit: int, now: JobTime
) -> Operation[OwnersAtPlace]:
    """Return the owners at a place with jobs that are due, from the one after the last.

    Not all owners are looked at, for many may have nothing but jobs that wait. If none has a due
    job among those looked at, it is the turn of the owner whose job has been due for longest.
    """
    values: Values = {"kind": place[0], "priority": place[1]}
    owners: list[Owner] = []
    if last is None:
        last = yield from _oldest_owner(values, now)
        owners.append(last)
    for _ in range(queue.LOOKED_AT):
        if len(owners) >= limit:
            break
        ((workspace, user),) = yield _sql.owner_after(Scope(last[1], last[0]), **values)
        if owners and (workspace, user) == owners[0]:
            break
        last = (workspace, user)
        if (yield _sql.has_due(Scope(user, workspace), **values, ticks=now.ticks)):
            owners.append(last)
    return OwnersAtPlace(place, last, owners or [(yield from _oldest_owner(values, now))])


def _oldest_owner(values: Values, now: JobTime) -> Operation[Owner]:
    ((workspace, user),) = yield _sql.oldest_owner(_EVERYBODY, **values, ticks=now.ticks)
    return workspace, user


class InFunction(JobSelection):
    """Selection by one statement each, for PostgreSQL: several workers claim at a time."""

    skipped_at_once = 1  # quotas are locked until the transaction ends

    def owners(
        self, places: Sequence[Place], turns: Turns, limit: int, now: JobTime
    ) -> Operation[list[OwnersAtPlace]]:
        """Return whose turn it is, for each place that has jobs which are due."""
        kinds, priorities = zip(*places, strict=True)
        workspaces, owners = zip(*(turns.get(place, (None, None)) for place in places), strict=True)
        rows = yield _sql.in_turn(
            _EVERYBODY,
            kinds=kinds,
            priorities=priorities,
            workspaces=workspaces,
            owners=owners,
            ticks=now.ticks,
            limit=limit,
            looks=queue.LOOKED_AT,
        )
        owner_places = []
        for number, at_place in groupby(rows, key=itemgetter(0)):
            last, *in_turn = [(row[2], row[3]) for row in at_place]
            owner_places.append(OwnersAtPlace(places[number - 1], last, in_turn))
        return owner_places

    def claim(
        self, place: Place, shares: Sequence[tuple[Owner, int]], lease: Lease
    ) -> Operation[list[Row]]:
        """Take as many jobs of each owner as its share."""
        kind, priority = place
        return (
            yield _sql.claim_shares(
                _EVERYBODY,
                kind=kind,
                priority=priority,
                **lease.values,
                workspaces=[workspace for (workspace, _), _ in shares],
                owners=[user for (_, user), _ in shares],
                shares=[share for _, share in shares],
            )
        )
