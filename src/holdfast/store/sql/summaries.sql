-- Summaries of contents, by keys.

-- part: mine
workspace = :workspace AND owner = :owner

-- part: bytes (sqlite)
CAST(data AS BLOB)

-- part: bytes (postgres)
data

-- part: summary
SELECT key, source, expires_at, sha256, size, codec, {bytes} FROM holdfast.summaries

-- part: insert
INSERT INTO holdfast.summaries (
    workspace, owner, key, source, expires_at, sha256, size, codec, data)
VALUES (:workspace, :owner, :key, :source, :expires_at, :sha256, :size, :codec, :data)

-- part: has_content (sqlite)
r.content IS NOT NULL

-- part: has_content (postgres)
NOT r.removed

-- name: by_key
{summary} WHERE {mine} AND key = :key AND (expires_at IS NULL OR expires_at > :now)

-- name: put
{insert} ON CONFLICT (workspace, owner, key) DO UPDATE
SET source = excluded.source, expires_at = excluded.expires_at, sha256 = excluded.sha256,
    size = excluded.size, codec = excluded.codec, data = excluded.data

-- name: add
{insert} ON CONFLICT DO NOTHING RETURNING key

-- name: page
{summary} WHERE {mine} AND key > :after ORDER BY key LIMIT :limit

-- name: remove_damaged
DELETE FROM holdfast.summaries
WHERE {mine} AND key = :key AND sha256 = :sha256 AND codec = :codec AND {bytes} = :data

-- name: drop_of_sources
DELETE FROM holdfast.summaries AS s
WHERE {mine} AND source <> '' AND source IN :sources AND NOT EXISTS (
    SELECT 1 FROM holdfast.refs AS r WHERE r.workspace = s.workspace AND r.owner = s.owner
    AND r.sha256 = s.source AND {has_content})

-- name: remove_expired
DELETE FROM holdfast.summaries WHERE {mine} AND expires_at <= :now
