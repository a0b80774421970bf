-- How full the store is, whether it is sound, and what may go.

-- part: theirs
owner = :owner AND workspace IN :workspaces

-- name: stats (sqlite)
SELECT kinds.refs, held.contents, held.size, held.stored, talks.sessions, talks.turns,
    states.stale, states.damaged, states.flagged, kinds.by_kind
FROM (
    SELECT coalesce(sum(number), 0) AS refs, json_group_object(kind, number) AS by_kind
    FROM (SELECT kind, count(*) AS number FROM refs WHERE {theirs} AND content IS NOT NULL
        GROUP BY kind)
) AS kinds, (
    SELECT coalesce(sum(c.damage IS NOT NULL), 0) AS damaged,
        coalesce(sum(c.damage IS NULL AND r.expires_at <= :now), 0) AS stale,
        coalesce(sum(r.flagged), 0) AS flagged
    FROM refs AS r JOIN contents AS c ON c.id = r.content
    WHERE r.owner = :owner AND r.workspace IN :workspaces
) AS states, (
    SELECT count(*) AS contents, coalesce(sum(size), 0) AS size,
        coalesce(sum(length(data)), 0) AS stored
    FROM contents WHERE id IN (SELECT content FROM refs WHERE {theirs} AND content IS NOT NULL)
) AS held, (
    SELECT (SELECT count(*) FROM turns WHERE {theirs}) AS turns, (
        SELECT count(DISTINCT CASE WHEN client_session <> ''
                THEN json_array(workspace, client_session) END)
            + coalesce(sum(client_session = ''), 0)
        FROM sessions WHERE {theirs} AND purpose = '') AS sessions
) AS talks

-- name: stats (postgres)
WITH live AS (
    SELECT workspace, sha256, r.kind, r.size, r.flags, r.expires_at, c.damage,
        octet_length(c.data) AS stored
    FROM holdfast.refs AS r
    LEFT JOIN holdfast.contents AS c USING (workspace, sha256)
    WHERE r.workspace IN :workspaces AND r.username = :owner AND NOT r.removed
), once AS (
    SELECT DISTINCT ON (workspace, sha256) size, stored FROM live
)
SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM once),
    (SELECT coalesce(sum(size), 0) FROM once)::bigint,
    (SELECT coalesce(sum(stored), 0) FROM once)::bigint,
    (
        SELECT count(DISTINCT (workspace, client_session)) FILTER (WHERE client_session <> '')
            + count(*) FILTER (WHERE client_session = '')
        FROM holdfast.sessions WHERE {theirs} AND purpose = ''
    ),
    (SELECT count(*) FROM holdfast.turns WHERE {theirs}),
    (SELECT count(*) FROM live WHERE damage IS NULL AND expires_at <= :now),
    (SELECT count(*) FROM live WHERE damage IS NOT NULL),
    (SELECT count(*) FROM live WHERE flags <> '[]'),
    (SELECT coalesce(json_object_agg(kind, refs), '{}')
     FROM (SELECT kind, count(*) AS refs FROM live GROUP BY kind) AS kinds)::text

-- Contents that refs of this user lead to, or turns name.

-- part: held (sqlite)
SELECT content FROM refs
WHERE workspace = :workspace AND owner = :owner AND content IS NOT NULL
UNION SELECT content FROM messages WHERE workspace = :workspace AND owner = :owner

-- part: held (postgres)
SELECT sha256 FROM holdfast.refs
WHERE workspace = :workspace AND username = :owner AND NOT removed
UNION SELECT sha256 FROM holdfast.messages WHERE workspace = :workspace AND username = :owner

-- name: count_contents
SELECT count(*) FROM ({held}) AS held

-- name: contents (sqlite)
SELECT c.sha256, c.size, c.codec, c.damage, CAST(c.data AS BLOB) FROM contents AS c
WHERE c.workspace = :workspace AND c.sha256 > :after AND c.id IN ({held})
ORDER BY c.sha256 LIMIT :limit

-- name: contents (postgres)
SELECT held.sha256, c.size, c.codec, c.damage, c.data FROM ({held}) AS held
LEFT JOIN holdfast.contents AS c ON c.workspace = :workspace AND c.sha256 = held.sha256
WHERE held.sha256 > :after ORDER BY held.sha256 LIMIT :limit

-- What nobody needs: untouched since the cutoff, used by no session that is open or was closed
-- since, and either stale or left by the sessions that used it.

-- part: number (sqlite)
r.id

-- part: number (postgres)
r.number

-- part: may_go (sqlite)
r.workspace = :workspace AND r.owner = :owner AND r.content IS NOT NULL
AND r.written_at <= :cutoff AND coalesce(r.accessed_at, r.written_at) <= :cutoff
AND NOT EXISTS (
    SELECT 1 FROM uses AS u LEFT JOIN sessions AS s
        ON s.workspace = u.workspace AND s.owner = u.owner AND s.session = u.session
    WHERE u.ref = r.id AND u.session <> '' AND (s.closed_at IS NULL OR s.closed_at > :cutoff))
AND (r.expires_at <= :cutoff OR (
    EXISTS (SELECT 1 FROM uses AS u WHERE u.ref = r.id)
    AND NOT EXISTS (SELECT 1 FROM uses AS u WHERE u.ref = r.id AND u.session = '')))

-- part: may_go (postgres)
r.workspace = :workspace AND r.username = :owner AND NOT r.removed
AND r.written_at <= :cutoff AND (r.accessed_at IS NULL OR r.accessed_at <= :cutoff)
AND NOT EXISTS (
    SELECT FROM holdfast.uses AS u
    LEFT JOIN holdfast.sessions AS s USING (workspace, username, session)
    WHERE (u.workspace, u.username, u.sha256, u.kind)
        = (r.workspace, r.username, r.sha256, r.kind)
      AND u.session <> '' AND (s.closed_at IS NULL OR s.closed_at > :cutoff))
AND (r.expires_at <= :cutoff OR (
    SELECT bool_and(u.session <> '') FROM holdfast.uses AS u
    WHERE (u.workspace, u.username, u.sha256, u.kind)
        = (r.workspace, r.username, r.sha256, r.kind)))

-- name: candidates
SELECT {number} FROM holdfast.refs AS r
WHERE {may_go} AND {number} > :after ORDER BY {number} LIMIT :limit

-- name: still_candidates
SELECT {number} FROM holdfast.refs AS r WHERE {may_go} AND {number} IN :numbers
