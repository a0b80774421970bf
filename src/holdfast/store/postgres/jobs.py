"""jobs: the statements of the queue on PostgreSQL, and its rows as records.

after database, before queue. Times are the server's, so that no clock of a worker's machine can
take a job from another or keep one; `$1` is NULL, or the time that a test has set.
"""

from __future__ import annotations

from typing import Any, LiteralString

from holdfast.store.queue import Job
from holdfast.store.scope import Scope

_COLUMNS: LiteralString = (
    "id, workspace, username, session, kind, key, ref_id, priority, state, attempts, max_attempts,"
    " most_cost, cost, error, created_at, due, completed_at, token"
)

ADD: LiteralString = (
    "INSERT INTO holdfast.jobs (workspace, username, session, kind, key, ref_id, priority, state,"
    " max_attempts, most_cost, created_at, due) SELECT $2, $3, $4, $5, $6, $7, $8, 'queued', $9,"
    " $10, holdfast.now_or($1), holdfast.now_or($1) + $11 ON CONFLICT DO NOTHING RETURNING id"
)

# Whoever waits is told when the transaction is over; equal notes of one become one.
NOTIFY: LiteralString = "SELECT pg_notify('holdfast_jobs', '')"

# Whose turn it is at each place (kind and priority), behind whom was served there last.
IN_TURN: LiteralString = """
SELECT place.number::integer AS place, owner.turn, owner.workspace, owner.username
FROM unnest($2::text[], $3::smallint[], $4::text[], $5::text[])
    WITH ORDINALITY AS place (kind, priority, workspace, username, number)
CROSS JOIN LATERAL holdfast.in_turn(
    place.kind, place.priority, place.workspace, place.username, holdfast.now_or($1), $6, $7
) AS owner
ORDER BY place.number, owner.turn
"""

# So many jobs of each of these owners at one place, those that have been due for longest.
CLAIM: LiteralString = """
UPDATE holdfast.jobs AS j
SET state = 'running', attempts = attempts + 1, due = NULL, token = $2,
    lease_until = holdfast.now_or($1) + $3, debited_on = holdfast.day_of(holdfast.now_or($1))
FROM (
    SELECT ready.id, ready.due
    FROM unnest($6::text[], $7::text[], $8::bigint[]) AS owner (workspace, username, share)
    CROSS JOIN LATERAL (
        SELECT id, due FROM holdfast.jobs AS waiting
        WHERE waiting.kind = $4 AND waiting.priority = $5
          AND waiting.workspace = owner.workspace AND waiting.username = owner.username
          AND waiting.due <= holdfast.now_or($1)
        ORDER BY waiting.due, waiting.id
        LIMIT owner.share
        FOR UPDATE SKIP LOCKED) AS ready) AS chosen
WHERE j.id = chosen.id
RETURNING j.*, chosen.due AS was_due
"""

DEBIT: LiteralString = """
INSERT INTO holdfast.quotas AS q (workspace, username, name, spent) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace, username, name) DO UPDATE SET spent = q.spent + excluded.spent
WHERE q.spent + excluded.spent <= $5
RETURNING spent
"""

CREDIT: LiteralString = """
UPDATE holdfast.quotas SET spent = spent - $4
WHERE workspace = $1 AND username = $2 AND name = $3
"""

SKIP: LiteralString = """
UPDATE holdfast.jobs
SET state = 'skipped', attempts = attempts - 1, token = NULL, lease_until = NULL, error = $3,
    due = (floor(holdfast.now_or($1) / 86400) + 1) * 86400
WHERE id = $2
"""

RENEW: LiteralString = (
    "UPDATE holdfast.jobs SET lease_until = holdfast.now_or($1) + $2"
    " WHERE state = 'running' AND (id, token) IN (SELECT * FROM unnest($3::bigint[], $4::text[]))"
    " RETURNING id"
)

# One statement, and so one transaction: the end, the refund, and what was made.
SETTLE: LiteralString = """
WITH ended AS (
    UPDATE holdfast.jobs
    SET state = $4, attempts = $5, error = $6, cost = cost + $7, due = holdfast.now_or($1) + $8,
        lease_until = NULL, completed_at = holdfast.now_or($1)
    WHERE id = $2 AND token = $3 AND state = 'running'
    RETURNING workspace, username, session, ref_id, most_cost, debited_on
), retold AS (
    UPDATE holdfast.refs AS r SET summary = $16
    FROM ended
    WHERE r.workspace = ended.workspace AND r.username = ended.username
      AND r.ref_id = ended.ref_id AND $16 <> ''
), refunded AS (
    UPDATE holdfast.quotas AS q SET spent = q.spent + $7 - ended.most_cost
    FROM ended
    WHERE ended.most_cost > 0
      AND q.workspace = ended.workspace AND q.username = ended.username
      AND q.name IN ('day ' || ended.debited_on, 'session ' || ended.session)
), summarised AS (
    INSERT INTO holdfast.summaries (
        workspace, username, key, source, expires_at, sha256, size, codec, data)
    SELECT workspace, username, $9, $10, $11, $12, $13, $14, $15 FROM ended
    WHERE $9::text IS NOT NULL
    ON CONFLICT (workspace, username, key) DO UPDATE
    SET source = excluded.source, expires_at = excluded.expires_at, sha256 = excluded.sha256,
        size = excluded.size, codec = excluded.codec, data = excluded.data
)
SELECT EXISTS (SELECT FROM ended) OR EXISTS (
    SELECT FROM holdfast.jobs WHERE id = $2 AND token = $3 AND state = $4) AS settled
"""

RECOVER: LiteralString = """
WITH lost AS (
    SELECT id, 0 < max_attempts AND max_attempts <= attempts AS spent FROM holdfast.jobs
    WHERE state = 'running' AND lease_until <= holdfast.now_or($1)
    FOR UPDATE SKIP LOCKED
)
UPDATE holdfast.jobs AS j
SET state = CASE WHEN lost.spent THEN 'failed' ELSE 'queued' END,
    due = CASE WHEN lost.spent THEN NULL ELSE holdfast.now_or($1) END,
    cost = cost + most_cost, error = $2, completed_at = holdfast.now_or($1),
    lease_until = NULL, token = NULL
FROM lost WHERE j.id = lost.id
RETURNING j.id
"""

LATEST: LiteralString = (
    "SELECT " + _COLUMNS + " FROM holdfast.jobs"  # noqa: S608 - all literals
    " WHERE ($1::text IS NULL OR (workspace = $1 AND username = $2))"
    " AND $3 IN ('', session) AND $4 IN ('', kind) AND $5 IN ('', state)"
    " ORDER BY id DESC LIMIT $6"
)

ALL: LiteralString = (
    "SELECT " + _COLUMNS + " FROM holdfast.jobs WHERE workspace = $1 AND username = $2 ORDER BY id"  # noqa: S608
)

# In the order of the fields of `JobLine`.
RESTORE: LiteralString = """
INSERT INTO holdfast.jobs (
    workspace, username, session, kind, key, ref_id, priority, state, attempts, max_attempts,
    most_cost, cost, error, created_at, due, completed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT DO NOTHING RETURNING id
"""

FIGURES: LiteralString = """
SELECT kind, state, count(*) AS jobs,
    greatest(0.0, coalesce(holdfast.now_or($1) - min(due), 0.0))::float8 AS waiting_seconds
FROM holdfast.jobs WHERE due IS NOT NULL OR state = 'running'
GROUP BY kind, state ORDER BY kind, state
"""

COST: LiteralString = (
    "SELECT coalesce(sum(spent), 0)::bigint AS cost FROM holdfast.quotas"
    " WHERE name = 'day ' || holdfast.day_of(holdfast.now_or($1))"
)

SPENT: LiteralString = """
SELECT name, spent FROM holdfast.quotas WHERE workspace = $1 AND username = $2 ORDER BY name
"""

FORGET_FINISHED: LiteralString = (
    "DELETE FROM holdfast.jobs WHERE id IN (SELECT id FROM holdfast.jobs WHERE due IS NULL"
    " AND state <> 'running' AND completed_at <= holdfast.now_or($1) - $2 LIMIT $3) RETURNING id"
)

OF_SESSION: tuple[LiteralString, ...] = (
    "DELETE FROM holdfast.jobs"
    " WHERE workspace = $1 AND username = $2 AND session = $3 AND session <> ''",
    "DELETE FROM holdfast.quotas"
    " WHERE workspace = $1 AND username = $2 AND name = 'session ' || $3::text",
)
OF_REF: LiteralString = """
DELETE FROM holdfast.jobs
WHERE workspace = $1 AND username = $2 AND ref_id = ANY ($3) AND ref_id <> ''
"""


def job_of(row: Any, *, is_claimed: bool = False) -> Job:
    """A row as a record; its token is told only to who claims it."""
    return Job(
        id=row["id"],
        scope=Scope(row["username"], row["workspace"], row["session"]),
        kind=row["kind"],
        key=row["key"],
        ref_id=row["ref_id"],
        priority=row["priority"],
        state=row["state"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        most_cost=row["most_cost"],
        cost=row["cost"],
        error=row["error"],
        created_at=row["created_at"],
        next_attempt_at=row["due"],
        completed_at=row["completed_at"],
        token=row["token"] if is_claimed else "",
    )
