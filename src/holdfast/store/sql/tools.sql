-- Tools and their schemas, as they were pinned. The number of a tool is its revision.

-- part: mine
t.workspace = :workspace AND t.owner = :owner

-- part: named
{mine} AND t.server_name = :server AND t.tool_name = :tool

-- part: data (sqlite)
-- Damage may turn bytes into what looks like text; they are read as bytes all the same.
CAST(t.data AS BLOB)

-- part: data (postgres)
t.data

-- part: tool
SELECT t.number, t.server_name, t.tool_name, t.schema_hash, t.token_count, t.version, t.uses,
    t.used_at, t.updated_at, t.sha256, t.size, t.codec, {data}
FROM holdfast.tools AS t

-- Held until the transaction ends: two who add the same tools do not wait for each other in a
-- circle.

-- name: lock_to_add (sqlite)

-- name: lock_to_add (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(
    length(:workspace)::text || ':' || :workspace || ' ' || length(:owner)::text || ':' || :owner,
    74))

-- name: add
INSERT INTO holdfast.tools (workspace, owner, server_name, tool_name, schema_hash, token_count,
    version, uses, used_at, updated_at, sha256, size, codec, data)
VALUES (:workspace, :owner, :server, :tool, :hash, :tokens, :version, :uses, :used_at, :updated_at,
    :sha256, :size, :codec, :data)
ON CONFLICT DO NOTHING RETURNING number

-- The number is given anew, as if the tool had been removed and added: who asks for what is behind
-- a revision gets it. The uses stay, for they are no part of what is replaced.

-- name: replace (sqlite)
INSERT OR REPLACE INTO tools (workspace, owner, server_name, tool_name, schema_hash, token_count,
    version, uses, used_at, updated_at, sha256, size, codec, data)
SELECT t.workspace, t.owner, t.server_name, t.tool_name, :hash, :tokens, :version, t.uses,
    t.used_at, :updated_at, :sha256, :size, :codec, :data
FROM tools AS t WHERE {named} AND t.number = :revision RETURNING number

-- name: replace (postgres)
UPDATE holdfast.tools AS t SET number = DEFAULT, schema_hash = :hash, token_count = :tokens,
    version = :version, updated_at = :updated_at, sha256 = :sha256, size = :size, codec = :codec,
    data = :data
WHERE {named} AND t.number = :revision RETURNING number

-- name: get
{tool} WHERE {named}

-- name: page
{tool} WHERE {mine} AND t.number > :after ORDER BY t.number LIMIT :limit

-- name: stamp
SELECT count(*), coalesce(max(t.number), 0) FROM holdfast.tools AS t WHERE {mine}

-- name: note_use
UPDATE holdfast.tools AS t SET uses = uses + 1, used_at = :now WHERE {named}

-- name: forget
DELETE FROM holdfast.tools AS t WHERE {named} RETURNING number

-- name: remove_damaged
DELETE FROM holdfast.tools AS t WHERE {mine} AND t.number = :number AND t.sha256 = :sha256
