-- Journals: entries in the order in which they were added.

-- part: named
workspace = :workspace AND owner = :owner AND session = :session AND name = :name

-- part: entry (sqlite)
sequence, at, sha256, size, codec, CAST(data AS BLOB)

-- part: entry (postgres)
sequence, at, sha256, size, codec, data

-- Whoever appends holds a lock on the name, so that no other transaction takes the next sequence.

-- name: lock (sqlite)

-- name: lock (postgres)
SELECT pg_advisory_xact_lock(hashtextextended('journal' || chr(10) || :workspace || chr(10)
    || :owner || chr(10) || :session || chr(10) || :name, 0))

-- name: last
SELECT coalesce(max(sequence), 0) FROM holdfast.journal WHERE {named}

-- name: add
INSERT INTO holdfast.journal (
    workspace, owner, session, name, sequence, at, sha256, size, codec, data)
VALUES (:workspace, :owner, :session, :name, :sequence, :at, :sha256, :size, :codec, :data)

-- name: entries
SELECT {entry} FROM holdfast.journal WHERE {named} AND sequence > :after ORDER BY sequence

-- name: names (sqlite)
SELECT DISTINCT name FROM journal
WHERE workspace = :workspace AND owner = :owner AND session = :session
AND substr(name, 1, :length) = :prefix ORDER BY name

-- name: names (postgres)
SELECT DISTINCT name FROM holdfast.journal
WHERE workspace = :workspace AND owner = :owner AND session = :session
AND starts_with(name, :prefix) ORDER BY name

-- name: forget
DELETE FROM holdfast.journal WHERE {named} RETURNING sequence

-- name: drop_of_session
DELETE FROM holdfast.journal
WHERE workspace = :workspace AND owner = :owner AND session = :session RETURNING sequence

-- name: page
SELECT session, name, {entry} FROM holdfast.journal
WHERE workspace = :workspace AND owner = :owner
AND (session, name, sequence) > (:after_session, :after_name, :after_sequence)
ORDER BY session, name, sequence LIMIT :limit
