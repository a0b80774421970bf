-- Sessions, their turns with what they cost, the messages that turns name, links and calibrations.

-- part: record (sqlite)
s.record

-- part: record (postgres)
json_build_object('session', s.session, 'dialect', s.dialect, 'model', s.model, 'title', s.title,
    'head', s.head, 'turns', s.turns, 'created_at', s.created_at, 'updated_at', s.updated_at,
    'closed_at', s.closed_at, 'forked_from', s.forked_from, 'shared', s.shared,
    'client', s.client, 'client_session', s.client_session, 'client_agent', s.client_agent,
    'purpose', s.purpose)::text

-- part: data (sqlite)
CAST(c.data AS BLOB)

-- part: data (postgres)
c.data

-- part: named
s.workspace = :workspace AND s.owner = :owner AND s.session = :session

-- name: any
SELECT session FROM holdfast.sessions LIMIT 1

-- name: get
SELECT {record} FROM holdfast.sessions AS s WHERE {named}

-- part: for_update (sqlite)

-- part: for_update (postgres)
FOR UPDATE

-- name: get_to_change
SELECT {record} FROM holdfast.sessions AS s WHERE {named} {for_update}

-- name: get_beside
SELECT (SELECT {record} FROM holdfast.sessions AS s WHERE {named}), (
    SELECT coalesce(max(sequence), 0) FROM holdfast.journal
    WHERE workspace = :workspace AND owner = :owner AND session = :session AND name = :journal)

-- name: place
SELECT s.updated_at FROM holdfast.sessions AS s
WHERE s.workspace = :workspace AND s.owner = :owner AND s.session = :before

-- name: latest
SELECT {record} FROM holdfast.sessions AS s
WHERE s.workspace = :workspace AND s.owner = :owner
AND (s.updated_at, s.session) < (:updated_at, :before)
ORDER BY s.updated_at DESC, s.session DESC LIMIT :limit

-- name: latest_of_client
SELECT {record} FROM holdfast.sessions AS s
WHERE s.workspace = :workspace AND s.owner = :owner AND s.client_session = :client_session
AND (s.updated_at, s.session) < (:updated_at, :before)
ORDER BY s.updated_at DESC, s.session DESC LIMIT :limit

-- Without being told which index, SQLite goes through all sessions of the user for each head.

-- name: with_head (sqlite)
SELECT s.record FROM json_each(:heads) AS h
CROSS JOIN sessions AS s INDEXED BY sessions_by_head ON s.head = h.value
WHERE s.workspace = :workspace AND s.owner = :owner AND s.closed_at IS NULL
AND (:of_any OR (s.client_session, s.client_agent) = (:client_session, :client_agent))
ORDER BY h.key, s.updated_at DESC, s.session DESC LIMIT 1

-- name: with_head (postgres)
SELECT {record} FROM holdfast.sessions AS s
WHERE s.workspace = :workspace AND s.username = :owner AND s.head = ANY (:heads::text[])
AND s.head <> '' AND s.closed_at IS NULL
AND (:of_any OR (s.client_session = :client_session AND s.client_agent = :client_agent))
ORDER BY array_position(:heads::text[], s.head), s.updated_at DESC, s.session DESC LIMIT 1

-- part: insert (sqlite)
INSERT INTO sessions (workspace, owner, session, head, updated_at, closed_at, record,
    client_session, client_agent, purpose)
VALUES (:workspace, :owner, :session, :head, :updated_at, :closed_at, :record, :client_session,
    :client_agent, :purpose)

-- part: insert (postgres)
INSERT INTO holdfast.sessions (workspace, username, session, dialect, model, title, head, turns,
    created_at, updated_at, closed_at, forked_from, shared, client, client_session, client_agent,
    purpose)
VALUES (:workspace, :owner, :session, :dialect, :model, :title, :head, :turns, :created_at,
    :updated_at, :closed_at, :forked_from, :shared, :client, :client_session, :client_agent,
    :purpose)

-- name: save (sqlite)
{insert} ON CONFLICT (workspace, owner, session) DO UPDATE SET head = excluded.head,
    updated_at = excluded.updated_at, closed_at = excluded.closed_at, record = excluded.record,
    client_session = excluded.client_session, client_agent = excluded.client_agent,
    purpose = excluded.purpose

-- name: save (postgres)
{insert} ON CONFLICT (workspace, username, session) DO UPDATE SET
    dialect = excluded.dialect, model = excluded.model, title = excluded.title,
    head = excluded.head, turns = excluded.turns, created_at = excluded.created_at,
    updated_at = excluded.updated_at, closed_at = excluded.closed_at,
    forked_from = excluded.forked_from, shared = excluded.shared,
    client = excluded.client, client_session = excluded.client_session,
    client_agent = excluded.client_agent, purpose = excluded.purpose

-- name: add
{insert} ON CONFLICT DO NOTHING RETURNING session

-- name: is_used
SELECT 1 FROM holdfast.uses
WHERE workspace = :workspace AND owner = :owner AND session = :session LIMIT 1

-- name: last_turn
SELECT coalesce(max(number), 0) FROM holdfast.turns
WHERE workspace = :workspace AND owner = :owner AND session = :session

-- part: dollars (sqlite)
coalesce(:@, 0.0)

-- part: dollars (postgres)
:@

-- name: add_turn
INSERT INTO holdfast.turns (workspace, owner, session, number, started_at, model, predicted,
    untouched, input, cached, output, expansions, expansion_tokens, cost, saved_cost, failed,
    answered, lazy_saved, tool_searches, tool_calls, lazy_calls, cache_written, cache_written_hour,
    demo_cost, demo_saved_cost, unreported, estimated, assumed, unpriced, overflows, record)
VALUES (:workspace, :owner, :session, :number, :started_at, :model, :predicted, :untouched, :input,
    :cached, :output, :expansions, :expansion_tokens, {dollars cost}, {dollars saved_cost}, :failed,
    :answered, :lazy_saved, :tool_searches, :tool_calls, :lazy_calls, :cache_written,
    :cache_written_hour, {dollars demo_cost}, {dollars demo_saved_cost}, :unreported, :estimated,
    :assumed, :unpriced, :overflows, :record)
ON CONFLICT DO NOTHING RETURNING number

-- name: turns
SELECT record FROM holdfast.turns
WHERE workspace = :workspace AND owner = :owner AND session = :session AND number > :after
ORDER BY number LIMIT :limit

-- name: name_new_messages (sqlite)
INSERT OR IGNORE INTO messages (workspace, owner, session, content)
SELECT :workspace, :owner, :session, c.id FROM json_each(:hashes) AS h
CROSS JOIN contents AS c ON c.workspace = :workspace AND c.sha256 = h.value

-- name: name_new_messages (postgres)
INSERT INTO holdfast.messages (workspace, username, sha256, session)
SELECT :workspace, :owner, sha256, :session FROM unnest(:hashes::text[]) AS added (sha256)
ORDER BY sha256 ON CONFLICT DO NOTHING

-- Of a workspace, the contents that turns of this user name: no others are theirs to name.

-- part: messages_of_user (sqlite)
json_each(:hashes) AS h
CROSS JOIN contents AS c ON c.workspace = :workspace AND c.sha256 = h.value
WHERE EXISTS (
    SELECT 1 FROM messages AS m
    WHERE m.content = c.id AND m.owner = :owner AND m.workspace = :workspace)

-- name: name_messages (sqlite)
INSERT OR IGNORE INTO messages (workspace, owner, session, content)
SELECT :workspace, :owner, :session, c.id FROM {messages_of_user}

-- name: name_messages (postgres)
INSERT INTO holdfast.messages (workspace, username, sha256, session)
SELECT DISTINCT workspace, username, sha256, :session FROM holdfast.messages
WHERE workspace = :workspace AND username = :owner AND sha256 IN :hashes ORDER BY sha256
ON CONFLICT DO NOTHING

-- name: messages (sqlite)
SELECT c.sha256, c.size, c.codec, c.damage, {data} FROM {messages_of_user}

-- name: messages (postgres)
SELECT h.value, c.size, c.codec, c.damage, {data}
FROM unnest(:hashes::text[]) WITH ORDINALITY AS h (value, key)
LEFT JOIN holdfast.contents AS c ON c.workspace = :workspace AND c.sha256 = h.value
WHERE EXISTS (
    SELECT 1 FROM holdfast.messages AS m
    WHERE m.workspace = :workspace AND m.username = :owner AND m.sha256 = h.value)
ORDER BY h.key

-- name: names_of_messages (sqlite)
SELECT c.sha256, m.session FROM json_each(:hashes) AS h
CROSS JOIN contents AS c ON c.workspace = :workspace AND c.sha256 = h.value
CROSS JOIN messages AS m ON m.content = c.id AND m.owner = :owner AND m.workspace = :workspace

-- name: names_of_messages (postgres)
SELECT sha256, session FROM holdfast.messages
WHERE workspace = :workspace AND username = :owner AND sha256 IN :hashes

-- name: exported_messages (sqlite)
SELECT c.sha256 FROM contents AS c WHERE c.workspace = :workspace AND c.sha256 > :after
AND EXISTS (
    SELECT 1 FROM messages AS m
    WHERE m.content = c.id AND m.owner = :owner AND m.workspace = :workspace)
ORDER BY c.sha256 LIMIT :limit

-- name: exported_messages (postgres)
SELECT DISTINCT sha256 FROM holdfast.messages
WHERE workspace = :workspace AND username = :owner AND sha256 > :after
ORDER BY sha256 LIMIT :limit

-- name: link
INSERT INTO holdfast.links (workspace, owner, name, session)
VALUES (:workspace, :owner, :name, :session)
ON CONFLICT (workspace, owner, name) DO UPDATE SET session = excluded.session

-- name: add_link
INSERT INTO holdfast.links (workspace, owner, name, session)
VALUES (:workspace, :owner, :name, :session) ON CONFLICT DO NOTHING RETURNING name

-- name: linked (sqlite)
SELECT l.session FROM json_each(:names) AS n CROSS JOIN links AS l ON l.name = n.value
WHERE l.workspace = :workspace AND l.owner = :owner ORDER BY n.key LIMIT 1

-- name: linked (postgres)
SELECT session FROM holdfast.links
WHERE workspace = :workspace AND username = :owner AND name = ANY (:names::text[])
ORDER BY array_position(:names::text[], name) LIMIT 1

-- part: is_there (sqlite)
content IS NOT NULL

-- part: is_there (postgres)
NOT removed

-- name: scopes
SELECT workspace, owner FROM (
    SELECT workspace, owner, max(updated_at) AS used FROM holdfast.sessions GROUP BY 1, 2
    UNION ALL
    SELECT DISTINCT workspace, owner, CAST(0 AS float8) FROM holdfast.refs WHERE {is_there}
    UNION ALL
    SELECT workspace, owner, CAST(0 AS float8) FROM holdfast.remembered_changes AS c
    WHERE EXISTS (SELECT 1 FROM holdfast.remembered AS r
        WHERE r.workspace = c.workspace AND r.owner = c.owner)
    UNION ALL
    SELECT workspace, owner, CAST(0 AS float8) FROM holdfast.fact_counters AS c
    WHERE EXISTS (SELECT 1 FROM holdfast.facts AS f
        WHERE f.workspace = c.workspace AND f.owner = c.owner)
    UNION ALL
    SELECT DISTINCT workspace, owner, CAST(0 AS float8) FROM holdfast.answers
    UNION ALL
    SELECT DISTINCT workspace, owner, CAST(0 AS float8) FROM holdfast.journal
    UNION ALL
    SELECT DISTINCT workspace, owner, CAST(0 AS float8) FROM holdfast.tools
) AS used
GROUP BY 1, 2 ORDER BY max(used) DESC, 1 DESC, 2 DESC

-- part: day (sqlite)
date(started_at, 'unixepoch')

-- part: day (postgres)
to_char(to_timestamp(started_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD')

-- The sum of a column of dollars, in whole billionths: see `records.sum_dollars`.

-- part: sum_of_dollars (sqlite)
sum(CAST(round(@ * 1000000000) AS INTEGER)) / 1000000000.0

-- part: sum_of_dollars (postgres)
coalesce(sum(round(@::numeric, 9)), 0)::float8

-- part: sum
CAST(sum(@) AS bigint)

-- part: number
count(*) FILTER (WHERE @)

-- The fields of `UsageTotal` behind its name, summed over turns.

-- part: sums
count(*), {sum predicted}, {sum untouched}, {sum input}, {sum cached}, {sum output},
    {sum expansions}, {sum expansion_tokens}, {sum_of_dollars cost}, {sum_of_dollars saved_cost},
    {number failed}, {number answered}, count(*) FILTER (WHERE lazy_saved > 0), {sum lazy_saved},
    {sum tool_searches}, {sum tool_calls}, {sum lazy_calls}, {sum cache_written},
    {sum cache_written_hour}, {sum_of_dollars demo_cost}, {sum_of_dollars demo_saved_cost},
    {number unreported}, {number estimated}, {number assumed}, {number unpriced},
    {number overflows}

-- part: chosen_turns
workspace = :workspace AND owner = :owner AND :session IN ('', session) AND started_at >= :since

-- name: usage_by_model
SELECT model, {sums} FROM holdfast.turns WHERE {chosen_turns} GROUP BY 1

-- name: usage_by_session
SELECT session, {sums} FROM holdfast.turns WHERE {chosen_turns} GROUP BY 1

-- name: usage_by_day
SELECT {day}, {sums} FROM holdfast.turns WHERE {chosen_turns} GROUP BY 1

-- name: calibration
SELECT data FROM holdfast.calibrations WHERE workspace = :workspace AND owner = :owner

-- name: save_calibration
INSERT INTO holdfast.calibrations (workspace, owner, data) VALUES (:workspace, :owner, :data)
ON CONFLICT (workspace, owner) DO UPDATE SET data = excluded.data

-- name: add_calibration
INSERT INTO holdfast.calibrations (workspace, owner, data) VALUES (:workspace, :owner, :data)
ON CONFLICT DO NOTHING RETURNING owner

-- name: remove_jobs
DELETE FROM holdfast.jobs
WHERE workspace = :workspace AND owner = :owner AND session = :session AND session <> ''

-- name: remove_quota
DELETE FROM holdfast.quotas
WHERE workspace = :workspace AND owner = :owner AND name = :name

-- name: remove_answers
DELETE FROM holdfast.answers
WHERE workspace = :workspace AND owner = :owner AND session = :session RETURNING number

-- name: remove_links
DELETE FROM holdfast.links
WHERE workspace = :workspace AND owner = :owner AND session = :session

-- name: remove_uses
DELETE FROM holdfast.uses WHERE workspace = :workspace AND owner = :owner AND session = :session

-- name: remove_turns
DELETE FROM holdfast.turns WHERE workspace = :workspace AND owner = :owner AND session = :session
RETURNING number

-- name: remove_messages (sqlite)
DELETE FROM messages WHERE workspace = :workspace AND owner = :owner AND session = :session
RETURNING (SELECT sha256 FROM contents AS c WHERE c.id = content)

-- name: remove_messages (postgres)
DELETE FROM holdfast.messages
WHERE workspace = :workspace AND username = :owner AND session = :session RETURNING sha256

-- name: remove_record
DELETE FROM holdfast.sessions
WHERE workspace = :workspace AND owner = :owner AND session = :session RETURNING session

-- name: exported
SELECT s.session, {record} FROM holdfast.sessions AS s
WHERE s.workspace = :workspace AND s.owner = :owner AND s.session > :after
ORDER BY s.session LIMIT :limit

-- name: exported_turns
SELECT session, number, record FROM holdfast.turns
WHERE workspace = :workspace AND owner = :owner AND (session, number) > (:after, :number)
ORDER BY session, number LIMIT :limit

-- name: exported_links
SELECT name, session FROM holdfast.links
WHERE workspace = :workspace AND owner = :owner AND name > :after ORDER BY name LIMIT :limit

-- Several workspaces of one user at once. Keys are sorted first: an index has all of them, and
-- records are many times larger.

-- name: latest_of_many (sqlite)
SELECT s.workspace, s.session, s.record FROM (
    SELECT workspace, session, updated_at FROM sessions
    WHERE owner = :owner AND workspace IN :workspaces
    ORDER BY updated_at DESC, session DESC, workspace DESC LIMIT :limit
) AS n CROSS JOIN sessions AS s
    ON s.workspace = n.workspace AND s.owner = :owner AND s.session = n.session
ORDER BY n.updated_at DESC, n.session DESC, n.workspace DESC

-- name: latest_of_many (postgres)
SELECT s.workspace, s.session, {record} FROM holdfast.sessions AS s
WHERE s.username = :owner AND s.workspace IN :workspaces
ORDER BY s.updated_at DESC, s.session DESC, s.workspace DESC LIMIT :limit

-- name: usage_of_many_by_day
SELECT {day}, {sums} FROM holdfast.turns WHERE owner = :owner AND workspace IN :workspaces
GROUP BY 1

-- name: usage_of_sessions (sqlite)
SELECT n.key, {sums} FROM json_each(:named) AS n CROSS JOIN turns AS t
    ON t.workspace = n.value ->> 0 AND t.owner = :owner AND t.session = n.value ->> 1
GROUP BY n.key

-- name: usage_of_sessions (postgres)
SELECT place - 1, {sums}
FROM unnest(:workspaces::text[], :names::text[]) WITH ORDINALITY AS n (workspace, session, place)
JOIN holdfast.turns AS t USING (workspace, session)
WHERE t.username = :owner GROUP BY place

-- part: is_failed (sqlite)
failed = 1

-- part: is_failed (postgres)
failed

-- name: failures
SELECT workspace, session, record FROM holdfast.turns
WHERE owner = :owner AND workspace IN :workspaces AND {is_failed}
AND started_at >= :start AND started_at < :stop
ORDER BY started_at DESC, workspace DESC, session DESC LIMIT :limit
