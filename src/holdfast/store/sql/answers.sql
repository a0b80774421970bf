-- Answers that may be given again, and the contents that each was made from.

-- part: mine
a.workspace = :workspace AND a.owner = :owner

-- part: data (sqlite)
-- Damage may turn bytes into what looks like text; they are read as bytes all the same.
CAST(a.data AS BLOB)

-- part: data (postgres)
a.data

-- part: vector (sqlite)
CAST(a.vector AS BLOB)

-- part: vector (postgres)
a.vector

-- SQLite keeps the refs in a table, PostgreSQL in an array.

-- part: refs (sqlite)
(SELECT json_group_array(ref_id) FROM (
    SELECT ref_id FROM answer_refs WHERE answer = a.number ORDER BY place))

-- part: refs (postgres)
to_json(a.refs)::text

-- part: is_of_ref (sqlite)
EXISTS (SELECT 1 FROM answer_refs WHERE answer = a.number AND ref_id = :ref)

-- part: is_of_ref (postgres)
a.refs && ARRAY[:ref]

-- part: answer
SELECT a.number, a.id, a.signature, a.session, a.embedder, {vector}, a.created_at, a.expires_at,
    a.hits, a.last_hit_at, {refs}, a.sha256, a.size, a.codec, {data}
FROM holdfast.answers AS a WHERE {mine}

-- part: refs_column (sqlite)

-- part: refs_column (postgres)
refs,

-- part: refs_value (sqlite)

-- part: refs_value (postgres)
:refs::text[],

-- name: add
INSERT INTO holdfast.answers (workspace, owner, session, {refs_column} id, signature, embedder,
    vector, created_at, expires_at, hits, last_hit_at, sha256, size, codec, data)
VALUES (:workspace, :owner, :session, {refs_value} :id, :signature, :embedder,
    :vector, :created_at, :expires_at, :hits, :last_hit_at, :sha256, :size, :codec, :data)
ON CONFLICT DO NOTHING RETURNING number

-- name: add_refs (sqlite)
INSERT INTO answer_refs (answer, place, ref_id)
SELECT a.number, r.key, r.value FROM answers AS a, json_each(:refs) AS r
WHERE {mine} AND a.id = :id

-- name: add_refs (postgres)

-- name: get
{answer} AND a.id = :id AND (a.expires_at IS NULL OR a.expires_at > :now)

-- name: candidates
SELECT a.id, {vector} FROM holdfast.answers AS a
WHERE {mine} AND a.signature = :signature AND a.embedder = :embedder AND a.embedder <> ''
AND (a.expires_at IS NULL OR a.expires_at > :now)
ORDER BY a.number DESC LIMIT :limit

-- name: hit
UPDATE holdfast.answers AS a SET hits = hits + 1, last_hit_at = :now WHERE {mine} AND a.id = :id

-- name: number
SELECT a.number FROM holdfast.answers AS a WHERE {mine} AND a.id = :id

-- name: latest
{answer} AND :session IN ('', a.session) AND a.number < :below AND (:ref = '' OR {is_of_ref})
ORDER BY a.number DESC LIMIT :limit

-- name: page
{answer} AND a.number > :after ORDER BY a.number LIMIT :limit

-- name: forget
DELETE FROM holdfast.answers AS a WHERE {mine} AND a.id IN :ids RETURNING id

-- name: remove_expired
DELETE FROM holdfast.answers AS a WHERE {mine} AND a.expires_at <= :now

-- name: remove_damaged
DELETE FROM holdfast.answers AS a
WHERE {mine} AND a.id = :id AND a.sha256 = :sha256 AND {data} = :data
