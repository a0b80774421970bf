"""jobs: the statements of the queue on SQLite.

jobs: after ticking, before queue. Each function is a job for a connection, inside of a
transaction: the writer begins each with BEGIN IMMEDIATE, so that no two claims see one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from holdfast.store import queue
from holdfast.store.operations import summaries
from holdfast.store.queue import (
    Claim,
    Depth,
    Ending,
    Job,
    Moment,
    NewJob,
    QueueFigures,
    Quotas,
    Turns,
)
from holdfast.store.scope import Scope
from holdfast.store.sqlite.running import run
from holdfast.store.statements import Values
from holdfast.store.transfer import JobLine

_COLUMNS = (
    "id, workspace, owner, session, kind, key, ref_id, priority, state, attempts, max_attempts,"
    " most_cost, cost, error, created_at, due, completed_at"
)
_FORGOTTEN_AT_ONCE = 5_000


def _job(row: tuple[Any, ...], now: Moment, token: str = "") -> Job:
    id_, workspace, owner, session, *middle, due, completed_at = row
    kind, key, ref_id, priority, state, attempts, max_attempts, *rest = middle
    most_cost, cost, error, created_at = rest
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
        next_attempt_at=None if due is None else due + now.skew,
        completed_at=completed_at,
        token=token,
    )


def enqueue(db: apsw.Connection, scope: Scope, jobs: Sequence[NewJob], now: Moment) -> int:
    """Add jobs; how many were new."""
    new = 0
    for job in jobs:
        db.execute(
            "INSERT OR IGNORE INTO jobs (workspace, owner, session, kind, key, ref_id, priority,"
            " state, max_attempts, most_cost, created_at, due)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?)",
            (
                *(scope.workspace, scope.user, scope.session, job.kind, job.key, job.ref_id),
                *(job.priority, job.max_attempts, job.most_cost, now.wall),
                now.ticks + job.delay_seconds,
            ),
        )
        new += db.changes()
    return new


def page(
    db: apsw.Connection, scope: Scope, after: int, limit: int, now: Moment
) -> tuple[list[Job], int]:
    """Jobs behind an id, and the id to go on behind; 0 at the end."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM jobs WHERE workspace = ? AND owner = ? AND id > ?"  # noqa: S608
        " ORDER BY id LIMIT ?",
        (scope.workspace, scope.user, after, limit),
    )
    jobs = [_job(row, now) for row in rows]
    return jobs, jobs[-1].id if len(jobs) == limit else 0


def restore(db: apsw.Connection, scope: Scope, line: JobLine, now: Moment) -> bool:
    """Put an exported job behind all others; whether there was none of its kind and key."""
    due = None if line.next_attempt_at is None else line.next_attempt_at - now.skew
    db.execute(
        "INSERT OR IGNORE INTO jobs (workspace, owner, session, kind, key, ref_id, priority, state,"
        " attempts, max_attempts, most_cost, cost, error, created_at, due, completed_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(scope.workspace, scope.user, line.session, line.kind, line.key, line.ref_id),
            *(line.priority, line.state, line.attempts, line.max_attempts, line.most_cost),
            *(line.cost, line.error, line.created_at, due, line.completed_at),
        ),
    )
    return bool(db.changes())


def claim(
    db: apsw.Connection, asked: Claim, token: str, now: Moment, turns: Turns
) -> tuple[list[Job], bool]:
    """Take jobs that are due; and whether there may be more behind those that were skipped."""
    claimed: list[Job] = []
    skipped = 0
    for job in _due(db, asked, now, turns):
        if why := _debit(db, job, asked.quotas, now):
            db.execute(
                "UPDATE jobs SET state = 'skipped', error = ?, due = ? WHERE id = ?",
                (why, now.tomorrow, job.id),
            )
            skipped += 1
        else:
            row = db.execute(
                "UPDATE jobs SET state = 'running', attempts = attempts + 1, due = NULL,"  # noqa: S608
                f" lease_until = ?, token = ?, debited_on = ? WHERE id = ? RETURNING {_COLUMNS}",
                (now.ticks + asked.lease_seconds, token, now.today, job.id),
            ).fetchall()[0]
            claimed.append(_job(row, now, token))
        if len(claimed) >= asked.limit or skipped >= queue.SKIPPED_AT_ONCE:
            break
    return claimed, skipped >= queue.SKIPPED_AT_ONCE


def _due(db: apsw.Connection, asked: Claim, now: Moment, turns: Turns) -> Iterator[Job]:
    """The jobs that are due, one after the other: each changes before the next is looked for."""
    for place in queue.places(asked):
        while (row := _next_in_turn(db, place, now, turns) or _oldest(db, place, now)) is not None:
            turns.setdefault(place, (row[1], row[2]))
            yield _job(row, now)


def _oldest(
    db: apsw.Connection, place: tuple[str, int], now: Moment, owner: tuple[str, ...] = ()
) -> tuple[Any, ...] | None:
    """The job of a place that has been due for longest; of one owner, if there is one."""
    whose = " AND workspace = ? AND owner = ?" if owner else ""
    return db.execute(
        f"SELECT {_COLUMNS} FROM jobs WHERE kind = ? AND priority = ?{whose} AND due <= ?"  # noqa: S608
        " ORDER BY due, id LIMIT 1",
        (*place, *owner, now.ticks),
    ).fetchone()


def _next_in_turn(
    db: apsw.Connection, place: tuple[str, int], now: Moment, turns: Turns
) -> tuple[Any, ...] | None:
    """The oldest job of the first owner behind the last one served; None if none is near."""
    first: tuple[str, str] | None = None
    for _ in range(queue.LOOKED_AT if place in turns else 0):
        owner = _owner_behind(db, place, turns[place])
        if owner is None or owner == first:
            return None
        turns[place] = owner
        first = first or owner
        if (row := _oldest(db, place, now, owner)) is not None:
            return row
    return None


def _owner_behind(
    db: apsw.Connection, place: tuple[str, int], owner: tuple[str, str]
) -> tuple[str, str] | None:
    """The next owner who has jobs that wait, due or not; behind the last comes the first."""
    return db.execute(
        "SELECT * FROM (SELECT workspace, owner FROM jobs WHERE kind = ?1 AND priority = ?2"
        " AND due IS NOT NULL AND (workspace, owner) > (?3, ?4) ORDER BY 1, 2 LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT workspace, owner FROM jobs WHERE kind = ?1"
        " AND priority = ?2 AND due IS NOT NULL ORDER BY 1, 2 LIMIT 1) LIMIT 1",
        (*place, *owner),
    ).fetchone()


def _debit(db: apsw.Connection, job: Job, quotas: Quotas, now: Moment) -> str:
    """Debit what a job may cost, or say which quota has no room for it."""
    if not job.most_cost:
        return ""
    if job.most_cost > quotas.artifact:
        return queue.over_quota("artifact")
    limits = {queue.day_quota(now.today): quotas.day}
    if job.scope.session:
        limits[queue.session_quota(job.scope.session)] = quotas.session
    for name, limit in limits.items():
        # Not all that were ever spent: a user has a row for each day and each session.
        debit = db.execute(
            "SELECT spent FROM quotas WHERE workspace = ? AND owner = ? AND name = ?",
            (job.scope.workspace, job.scope.user, name),
        ).get
        if (debit or 0) + job.most_cost > limit:
            return queue.over_quota(name.partition(" ")[0])
    for name in limits:
        db.execute(
            "INSERT INTO quotas (workspace, owner, name, spent) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET spent = spent + excluded.spent",
            (job.scope.workspace, job.scope.user, name, job.most_cost),
        )
    return ""


def renew(db: apsw.Connection, jobs: Sequence[Job], lease_seconds: float, now: Moment) -> set[int]:
    """Hold claimed jobs for longer."""
    held = set()
    for job in jobs:
        db.execute(
            "UPDATE jobs SET lease_until = ? WHERE id = ? AND token = ? AND state = 'running'",
            (now.ticks + lease_seconds, job.id, job.token),
        )
        if db.changes():
            held.add(job.id)
    return held


def settle(
    db: apsw.Connection, job: Job, ending: Ending, summary: Values | None, now: Moment
) -> bool:
    """Write down how an attempt ended; whether it was still this one's to end."""
    delay = ending.delay_seconds
    rows = db.execute(
        "UPDATE jobs SET state = ?, attempts = ?, error = ?, cost = cost + ?, due = ?,"
        " lease_until = NULL, completed_at = ?"
        " WHERE id = ? AND token = ? AND state = 'running' RETURNING debited_on",
        (
            *(ending.state, ending.attempts, ending.error, ending.cost),
            *(None if delay is None else now.ticks + delay, now.wall, job.id, job.token),
        ),
    ).fetchall()
    if not rows:
        return _was_settled(db, job, ending)
    if job.most_cost:
        db.execute(
            "UPDATE quotas SET spent = spent + ? WHERE workspace = ? AND owner = ?"
            " AND name IN (?, ?)",
            (
                *(ending.cost - job.most_cost, job.scope.workspace, job.scope.user),
                *(queue.day_quota(str(rows[0][0])), queue.session_quota(job.scope.session)),
            ),
        )
    if summary is not None:
        run(db, summaries.put(job.scope, summary))
    return True


def _was_settled(db: apsw.Connection, job: Job, ending: Ending) -> bool:
    """Whether the same was written down before, by one who did not hear that it was."""
    return bool(
        db.execute(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ? AND token = ? AND state = ?)",
            (job.id, job.token, ending.state),
        ).get
    )


def recover(db: apsw.Connection, now: Moment) -> int:
    """Queue jobs again whose lease ran out, or note that they were tried often enough."""
    db.execute(
        "UPDATE jobs SET"
        " state = iif(0 < max_attempts AND max_attempts <= attempts, 'failed', 'queued'),"
        " due = iif(0 < max_attempts AND max_attempts <= attempts, NULL, :ticks),"
        " cost = cost + most_cost, error = :why, completed_at = :wall, lease_until = NULL,"
        " token = NULL"
        " WHERE state = 'running' AND lease_until <= :ticks",
        {"ticks": now.ticks, "wall": now.wall, "why": queue.LOST},
    )
    return int(db.changes())


def latest(
    db: apsw.Connection, scope: Scope | None, *, kind: str, state: str, limit: int, now: Moment
) -> list[Job]:
    """The jobs queued last."""
    where = (
        {"workspace": None, "owner": None, "session": ""}
        if scope is None
        else {"workspace": scope.workspace, "owner": scope.user, "session": scope.session}
    )
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM jobs WHERE"  # noqa: S608 - a constant
        " (:workspace IS NULL OR (workspace = :workspace AND owner = :owner))"
        " AND :session IN ('', session) AND :kind IN ('', kind) AND :state IN ('', state)"
        " ORDER BY id DESC LIMIT :limit",
        {**where, "kind": kind, "state": state, "limit": max(limit, 0)},
    )
    return [_job(row, now) for row in rows]


def figures(db: apsw.Connection, now: Moment) -> QueueFigures:
    """How much there is to be done."""
    rows = db.execute(
        "SELECT kind, state, count(*), max(0.0, coalesce(?1 - min(due), 0.0)) FROM ("
        " SELECT kind, state, due FROM jobs WHERE due IS NOT NULL"
        " UNION ALL SELECT kind, state, NULL FROM jobs WHERE state = 'running'"
        ") GROUP BY kind, state ORDER BY kind, state",
        (now.ticks,),
    )
    depths = [
        Depth(kind=kind, state=state, jobs=jobs, waiting_seconds=waiting)
        for kind, state, jobs, waiting in rows
    ]
    cost = db.execute(
        "SELECT coalesce(sum(spent), 0) FROM quotas WHERE name = ?", (queue.day_quota(now.today),)
    ).get
    return QueueFigures(depths=depths, cost_today=cost)


def spent(db: apsw.Connection, scope: Scope) -> dict[str, int]:
    """The tokens debited, by quota."""
    return dict(
        db.execute(
            "SELECT name, spent FROM quotas WHERE workspace = ? AND owner = ? ORDER BY name",
            (scope.workspace, scope.user),
        )
    )


def forget_finished(db: apsw.Connection, age_seconds: float, now: Moment) -> int:
    """Remove a part of the jobs that ended so long ago; how many went."""
    db.execute(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE due IS NULL"
        " AND state <> 'running' AND completed_at <= ? LIMIT ?)",
        (now.wall - age_seconds, _FORGOTTEN_AT_ONCE),
    )
    return int(db.changes())


def drop_of_ref(db: apsw.Connection, scope: Scope, ref_id: str) -> None:
    """Remove the jobs about a content that goes without a trace."""
    db.execute(
        "DELETE FROM jobs WHERE workspace = ? AND owner = ? AND ref_id = ? AND ref_id <> ''",
        (scope.workspace, scope.user, ref_id),
    )


def drop_of_session(db: apsw.Connection, scope: Scope) -> None:
    """Remove the jobs of a session, and what they cost."""
    who = (scope.workspace, scope.user)
    db.execute(
        "DELETE FROM jobs WHERE workspace = ? AND owner = ? AND session = ? AND session <> ''",
        (*who, scope.session),
    )
    db.execute(
        "DELETE FROM quotas WHERE workspace = ? AND owner = ? AND name = ?",
        (*who, queue.session_quota(scope.session)),
    )
