-- Jobs and quotas. SQLite's times are ticks of `clock`, PostgreSQL's those of the server, so that no
-- clock of a worker's machine can take a job from another or keep one. On PostgreSQL `:ticks` and
-- `:wall` are NULL, or the time that a test has set.

-- part: ticks (sqlite)
:ticks

-- part: ticks (postgres)
holdfast.now_or(:ticks)

-- part: wall (sqlite)
:wall

-- part: wall (postgres)
holdfast.now_or(:wall)

-- part: today (sqlite)
date(:wall, 'unixepoch')

-- part: today (postgres)
holdfast.day_of(holdfast.now_or(:wall))

-- part: tomorrow (sqlite)
:ticks + (CAST(:wall / 86400 AS INTEGER) + 1) * 86400 - :wall

-- part: tomorrow (postgres)
(floor(holdfast.now_or(:ticks) / 86400) + 1) * 86400

-- part: skip_locked (sqlite)

-- part: skip_locked (postgres)
FOR UPDATE SKIP LOCKED

-- part: columns
@.id, @.workspace, @.owner, @.session, @.kind, @.key, @.ref_id, @.priority, @.state, @.attempts,
    @.max_attempts, @.most_cost, @.cost, @.error, @.created_at, @.due, @.completed_at

-- part: ours
j.id = :id AND j.token = :token AND j.state = 'running'

-- name: clock (sqlite)
SELECT boot, ahead, seen FROM clock

-- name: clock (postgres)

-- name: set_clock (sqlite)
INSERT OR REPLACE INTO clock (id, boot, ahead, seen) VALUES (1, :boot, :ahead, :seen)

-- name: set_clock (postgres)

-- name: add
INSERT INTO holdfast.jobs (workspace, owner, session, kind, key, ref_id, priority, state,
    max_attempts, most_cost, created_at, due)
VALUES (:workspace, :owner, :session, :kind, :key, :ref_id, :priority, 'queued', :max_attempts,
    :most_cost, {wall}, {ticks} + :delay)
ON CONFLICT DO NOTHING RETURNING id

-- Workers that wait are told when the transaction ends; equal notes of one become one.

-- name: notify (sqlite)

-- name: notify (postgres)
SELECT pg_notify('holdfast_jobs', '')

-- Whose turn it is at each place (kind and priority), after the owner who was served there last.
-- SQLite reads the same with the four statements below.

-- name: in_turn (sqlite)

-- name: in_turn (postgres)
SELECT place.number::integer, owner.turn, owner.workspace, owner.username
FROM unnest(:kinds::text[], :priorities::smallint[], :workspaces::text[], :owners::text[])
    WITH ORDINALITY AS place (kind, priority, workspace, username, number)
CROSS JOIN LATERAL holdfast.in_turn(
    place.kind, place.priority, place.workspace, place.username, {ticks}, :limit, :looks
) AS owner
ORDER BY place.number, owner.turn

-- name: due_places (sqlite)
SELECT k.key, p.value FROM json_each(:priorities) AS p CROSS JOIN json_each(:kinds) AS k
WHERE EXISTS (
    SELECT 1 FROM jobs WHERE kind = k.value AND priority = p.value AND due <= :ticks)
ORDER BY p.value DESC, k.key

-- name: due_places (postgres)

-- name: oldest_owner
SELECT workspace, owner FROM holdfast.jobs
WHERE kind = :kind AND priority = :priority AND due <= {ticks} ORDER BY due, id LIMIT 1

-- The next owner who has jobs that wait, due or not; after the last comes the first.

-- name: owner_after (sqlite)
SELECT * FROM (SELECT workspace, owner FROM jobs WHERE kind = :kind AND priority = :priority
    AND due IS NOT NULL AND (workspace, owner) > (:workspace, :owner) ORDER BY 1, 2 LIMIT 1)
UNION ALL SELECT * FROM (SELECT workspace, owner FROM jobs WHERE kind = :kind
    AND priority = :priority AND due IS NOT NULL ORDER BY 1, 2 LIMIT 1) LIMIT 1

-- name: owner_after (postgres)

-- name: has_due
SELECT 1 FROM holdfast.jobs WHERE kind = :kind AND priority = :priority
AND workspace = :workspace AND owner = :owner AND due <= {ticks} LIMIT 1

-- The job of the scope that has been due for longest.

-- name: claim_oldest (sqlite)
UPDATE jobs SET state = 'running', attempts = attempts + 1, due = NULL, token = :token,
    lease_until = {ticks} + :seconds, debited_on = {today}
WHERE id = (SELECT id FROM jobs WHERE kind = :kind AND priority = :priority
    AND workspace = :workspace AND owner = :owner AND due <= {ticks} ORDER BY due, id LIMIT 1)
RETURNING {columns jobs}, debited_on

-- name: claim_oldest (postgres)

-- Of each of these owners as many jobs as its share, those that have been due for longest.

-- name: claim_shares (sqlite)

-- name: claim_shares (postgres)
UPDATE holdfast.jobs AS j SET state = 'running', attempts = attempts + 1, due = NULL,
    token = :token, lease_until = {ticks} + :seconds, debited_on = {today}
FROM (
    SELECT ready.id, ready.due
    FROM unnest(:workspaces::text[], :owners::text[], :shares::bigint[])
        AS who (workspace, username, share)
    CROSS JOIN LATERAL (
        SELECT id, due FROM holdfast.jobs AS waiting
        WHERE waiting.kind = :kind AND waiting.priority = :priority
          AND waiting.workspace = who.workspace AND waiting.username = who.username
          AND waiting.due <= {ticks}
        ORDER BY waiting.due, waiting.id
        LIMIT who.share
        FOR UPDATE SKIP LOCKED) AS ready) AS chosen
WHERE j.id = chosen.id
RETURNING {columns j}, j.debited_on, chosen.due

-- name: debit
INSERT INTO holdfast.quotas AS q (workspace, owner, name, spent)
VALUES (:workspace, :owner, :name, :cost)
ON CONFLICT (workspace, owner, name) DO UPDATE SET spent = q.spent + excluded.spent
WHERE q.spent + excluded.spent <= :limit
RETURNING spent

-- name: refund
UPDATE holdfast.quotas SET spent = spent - :cost
WHERE workspace = :workspace AND owner = :owner AND name = :name

-- name: skip
UPDATE holdfast.jobs SET state = 'skipped', attempts = attempts - 1, token = NULL,
    lease_until = NULL, error = :why, due = {tomorrow}
WHERE id = :id

-- name: renew
UPDATE holdfast.jobs SET lease_until = {ticks} + :seconds
WHERE state = 'running' AND id IN :ids AND CAST(id AS text) || ' ' || token IN :claims
RETURNING id

-- The refund of what an attempt did not cost, and its end; no row if it was not this one's to end.

-- part: end
UPDATE holdfast.jobs AS j SET state = :state, attempts = :attempts, error = :error,
    cost = cost + :cost, due = {ticks} + :delay, lease_until = NULL, completed_at = {wall}
WHERE {ours}

-- name: settle (sqlite)
UPDATE quotas AS q SET spent = q.spent + :cost - j.most_cost FROM jobs AS j
WHERE {ours} AND j.most_cost > 0 AND q.workspace = j.workspace AND q.owner = j.owner
AND q.name IN ('day ' || j.debited_on, 'session ' || j.session);
{end} RETURNING id

-- name: settle (postgres)
WITH ended AS (
    {end}
    RETURNING id, workspace, username, session, most_cost, debited_on
), refunded AS (
    UPDATE holdfast.quotas AS q SET spent = q.spent + :cost - ended.most_cost
    FROM ended
    WHERE ended.most_cost > 0
      AND q.workspace = ended.workspace AND q.username = ended.username
      AND q.name IN ('day ' || ended.debited_on, 'session ' || ended.session)
)
SELECT id FROM ended

-- Whether the attempt was ended so before, by a caller who did not hear of it.

-- name: was_settled
SELECT 1 FROM holdfast.jobs WHERE id = :id AND token = :token AND state = :state

-- name: recover
UPDATE holdfast.jobs
SET state = CASE WHEN 0 < max_attempts AND max_attempts <= attempts
        THEN 'failed' ELSE 'queued' END,
    due = CASE WHEN NOT (0 < max_attempts AND max_attempts <= attempts) THEN {ticks} END,
    cost = cost + most_cost, error = :why, completed_at = {wall}, lease_until = NULL, token = NULL
WHERE id IN (
    SELECT id FROM holdfast.jobs WHERE state = 'running' AND lease_until <= {ticks} {skip_locked})
RETURNING id

-- name: latest
SELECT {columns j} FROM holdfast.jobs AS j
WHERE (:of_all OR (j.workspace = :workspace AND j.owner = :owner))
AND :session IN ('', j.session) AND :kind IN ('', j.kind) AND :state IN ('', j.state)
ORDER BY j.id DESC LIMIT :limit

-- name: page
SELECT {columns j} FROM holdfast.jobs AS j
WHERE j.workspace = :workspace AND j.owner = :owner AND j.id > :after ORDER BY j.id LIMIT :limit

-- name: restore
INSERT INTO holdfast.jobs (workspace, owner, session, kind, key, ref_id, priority, state, attempts,
    max_attempts, most_cost, cost, error, created_at, due, completed_at)
VALUES (:workspace, :owner, :session, :kind, :key, :ref_id, :priority, :state, :attempts,
    :max_attempts, :most_cost, :cost, :error, :created_at, :due, :completed_at)
ON CONFLICT DO NOTHING RETURNING id

-- part: waiting (sqlite)
max(0.0, coalesce({ticks} - min(due), 0.0))

-- part: waiting (postgres)
greatest(0.0, coalesce({ticks} - min(due), 0.0))::float8

-- name: depths
SELECT kind, state, count(*), {waiting} FROM (
    SELECT kind, state, due FROM holdfast.jobs WHERE due IS NOT NULL
    UNION ALL SELECT kind, state, NULL FROM holdfast.jobs WHERE state = 'running') AS jobs
GROUP BY kind, state ORDER BY kind, state

-- name: cost_today
SELECT CAST(coalesce(sum(spent), 0) AS bigint) FROM holdfast.quotas WHERE name = 'day ' || {today}

-- name: spent
SELECT name, spent FROM holdfast.quotas
WHERE workspace = :workspace AND owner = :owner ORDER BY name

-- name: forget_finished
DELETE FROM holdfast.jobs WHERE id IN (
    SELECT id FROM holdfast.jobs WHERE due IS NULL AND state <> 'running'
    AND completed_at <= {wall} - :age LIMIT :limit) RETURNING id
