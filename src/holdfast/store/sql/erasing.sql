-- Records that go for good: those of long ago, and all that a user has.

-- name: count_removal (sqlite)
UPDATE removals SET number = number + 1 WHERE id = 1

-- name: count_removal (postgres)
INSERT INTO holdfast.removals AS r (id, number) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET number = r.number + 1

-- name: old_sessions
SELECT session FROM holdfast.sessions
WHERE workspace = :workspace AND owner = :owner AND updated_at < :before
ORDER BY updated_at LIMIT :limit

-- name: old_refs (sqlite)
SELECT id FROM refs AS r
WHERE workspace = :workspace AND owner = :owner AND written_at < :before
AND coalesce(accessed_at, written_at) < :before AND NOT EXISTS (
    SELECT 1 FROM uses AS x
    JOIN sessions AS s ON s.workspace = x.workspace AND s.owner = x.owner
        AND s.session = x.session
    WHERE x.ref = r.id)
LIMIT :limit

-- name: old_refs (postgres)
SELECT number FROM holdfast.refs AS r
WHERE workspace = :workspace AND username = :owner AND written_at < :before
AND coalesce(accessed_at, written_at) < :before AND NOT EXISTS (
    SELECT FROM holdfast.uses AS u
    JOIN holdfast.sessions AS s USING (workspace, username, session)
    WHERE (u.workspace, u.username, u.sha256, u.kind)
        = (r.workspace, r.username, r.sha256, r.kind))
LIMIT :limit

-- Records of a session that is there go with it.

-- part: of_no_session
NOT EXISTS (
    SELECT 1 FROM holdfast.sessions AS s
    WHERE s.workspace = x.workspace AND s.owner = x.owner AND s.session = x.session)

-- part: old
workspace = :workspace AND owner = :owner AND @ < :before

-- name: old_turns
SELECT place FROM holdfast.remembered AS x WHERE {old at} AND {of_no_session} LIMIT :limit

-- name: old_facts
SELECT id FROM holdfast.facts AS f WHERE {old created_at} AND NOT EXISTS (
    SELECT 1 FROM holdfast.fact_sources AS x
    JOIN holdfast.sessions AS s
        ON s.workspace = x.workspace AND s.owner = x.owner AND s.session = x.session
    WHERE x.fact = f.number)
LIMIT :limit

-- name: remove_old_answers
DELETE FROM holdfast.answers WHERE number IN (
    SELECT number FROM holdfast.answers AS x
    WHERE {old created_at} AND {of_no_session} LIMIT :limit)
RETURNING 1

-- part: row (sqlite)
rowid

-- part: row (postgres)
ctid

-- name: remove_old_entries
DELETE FROM holdfast.journal WHERE {row} IN (
    SELECT {row} FROM holdfast.journal AS x WHERE {old at} AND {of_no_session} LIMIT :limit)
RETURNING 1

-- name: remove_old_audit
DELETE FROM holdfast.audit WHERE {row} IN (
    SELECT {row} FROM holdfast.audit WHERE {old at} LIMIT :limit)
RETURNING 1

-- Tables of a user; `uses` and the like go with what they belong to.

-- part: clear (sqlite)
DELETE FROM @ WHERE workspace = :workspace AND owner = :owner;
SELECT changes()

-- part: clear (postgres)
WITH gone AS (
    DELETE FROM holdfast.@ WHERE workspace = :workspace AND username = :owner RETURNING 1
)
SELECT count(*) FROM gone

-- name: clear_refs
{clear refs}

-- name: clear_turns
{clear turns}

-- name: clear_messages
{clear messages}

-- name: clear_links
{clear links}

-- name: clear_sessions
{clear sessions}

-- name: clear_calibrations
{clear calibrations}

-- name: clear_audit
{clear audit}

-- name: clear_summaries
{clear summaries}

-- name: clear_jobs
{clear jobs}

-- name: clear_quotas
{clear quotas}

-- name: clear_facts
{clear facts}

-- name: clear_answers
{clear answers}

-- name: clear_journal
{clear journal}

-- name: clear_tools
{clear tools}

-- name: clear_daily_usage
{clear daily_usage}

-- name: clear_reservations
{clear reservations}

-- name: owners
SELECT workspace, owner FROM holdfast.refs
UNION SELECT workspace, owner FROM holdfast.turns
UNION SELECT workspace, owner FROM holdfast.messages
UNION SELECT workspace, owner FROM holdfast.links
UNION SELECT workspace, owner FROM holdfast.sessions
UNION SELECT workspace, owner FROM holdfast.calibrations
UNION SELECT workspace, owner FROM holdfast.audit
UNION SELECT workspace, owner FROM holdfast.summaries
UNION SELECT workspace, owner FROM holdfast.jobs
UNION SELECT workspace, owner FROM holdfast.quotas
UNION SELECT workspace, owner FROM holdfast.facts
UNION SELECT workspace, owner FROM holdfast.answers
UNION SELECT workspace, owner FROM holdfast.journal
UNION SELECT workspace, owner FROM holdfast.tools
UNION SELECT workspace, owner FROM holdfast.daily_usage
UNION SELECT workspace, owner FROM holdfast.reservations
UNION SELECT workspace, owner FROM holdfast.remembered
