-- Contents, once per workspace; refs that lead to them, who uses them, and the audit of both.

-- part: data (sqlite)
-- Damage may turn bytes into what looks like text; they are read as bytes all the same.
CAST(c.data AS BLOB)

-- part: data (postgres)
c.data

-- part: content
c.size, c.codec, c.damage, {data}

-- part: is_there (sqlite)
r.content IS NOT NULL

-- part: is_there (postgres)
NOT r.removed

-- part: number (sqlite)
r.id

-- part: number (postgres)
r.number

-- part: detail (sqlite)
r.detail

-- part: detail (postgres)
json_build_object('summary', r.summary, 'compressed', r.compressed,
    'meta', r.meta::json, 'flags', r.flags::json)::text

-- part: join_content (sqlite)
LEFT JOIN contents AS c ON c.id = r.content

-- part: join_content (postgres)
LEFT JOIN holdfast.contents AS c
    ON c.workspace = r.workspace AND c.sha256 = r.sha256 AND NOT r.removed

-- part: of_content (sqlite)
r.content = c.id

-- part: of_content (postgres)
r.workspace = c.workspace AND r.sha256 = c.sha256 AND NOT r.removed

-- part: message_of_content (sqlite)
m.content = c.id

-- part: message_of_content (postgres)
m.workspace = c.workspace AND m.sha256 = c.sha256

-- part: of_ref
r.workspace = :workspace AND r.owner = :owner AND r.sha256 = :sha256 AND r.kind = :kind

-- part: row
r.ref_id, r.kind, r.sha256, r.size, r.tokens, r.created_at, r.written_at, r.expires_at,
    r.accessed_at, r.accesses, {detail}, NOT {is_there}, c.damage, {number}

-- Those who add hold a shared lock of the workspace for their transaction, those who remove an
-- exclusive one: nothing is removed between being found and being referred to. Both take it first.

-- name: lock_to_add (sqlite)

-- name: lock_to_add (postgres)
SELECT pg_advisory_xact_lock_shared(hashtextextended(:workspace, 71))

-- name: lock_to_remove (sqlite)

-- name: lock_to_remove (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(:workspace, 71))

-- name: keep
INSERT INTO holdfast.contents AS known (workspace, sha256, size, codec, data)
VALUES (:workspace, :sha256, :size, :codec, :data)
ON CONFLICT (workspace, sha256) DO UPDATE SET size = excluded.size, codec = excluded.codec,
    data = excluded.data, damage = NULL
WHERE known.damage IS NOT NULL

-- name: sweep
DELETE FROM holdfast.contents AS c WHERE c.workspace = :workspace AND c.sha256 IN :hashes
AND NOT EXISTS (SELECT 1 FROM holdfast.refs AS r WHERE {of_content})
AND NOT EXISTS (SELECT 1 FROM holdfast.messages AS m WHERE {message_of_content})
RETURNING size

-- name: sweep_all
DELETE FROM holdfast.contents AS c WHERE c.workspace = :workspace
AND NOT EXISTS (SELECT 1 FROM holdfast.refs AS r WHERE {of_content})
AND NOT EXISTS (SELECT 1 FROM holdfast.messages AS m WHERE {message_of_content})

-- part: for_update_of_content (sqlite)

-- part: for_update_of_content (postgres)
FOR UPDATE OF c

-- name: contents
SELECT c.sha256, {content} FROM holdfast.contents AS c
WHERE c.workspace = :workspace AND c.sha256 IN :hashes {for_update_of_content}

-- name: mark_damaged
UPDATE holdfast.contents SET damage = :damage WHERE workspace = :workspace AND sha256 IN :hashes

-- name: of_contents
SELECT {row} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner AND r.sha256 IN :hashes AND {is_there}
ORDER BY {number}

-- name: find
SELECT {row} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner
AND r.sha256 BETWEEN :low AND :high AND :kind IN ('', r.kind)

-- name: open
SELECT {row}, {content} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner
AND r.sha256 BETWEEN :low AND :high AND :kind IN ('', r.kind)

-- name: known (sqlite)
SELECT {row} FROM json_each(:prefixes) AS p CROSS JOIN refs AS r
    ON r.workspace = :workspace AND r.owner = :owner
    AND r.sha256 BETWEEN p.value AND p.value || 'g' {join_content}

-- name: known (postgres)
SELECT {row} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.username = :owner
AND (r.ref_id = ANY (:refs::text[]) OR r.sha256 = ANY (:hashes::text[])) FOR UPDATE OF r

-- part: insert_ref (sqlite)
INSERT INTO refs (workspace, owner, kind, sha256, ref_id, content, size, tokens, created_at,
    written_at, expires_at, accessed_at, accesses, flagged, detail)
VALUES (:workspace, :owner, :kind, :sha256, :ref_id,
    CASE WHEN NOT :removed THEN (
        SELECT id FROM contents WHERE workspace = :workspace AND sha256 = :sha256) END,
    :size, :tokens, :created_at, :written_at, :expires_at, :accessed_at, :accesses,
    :flags <> '[]', :detail)

-- part: insert_ref (postgres)
INSERT INTO holdfast.refs (workspace, username, kind, sha256, ref_id, removed, size, tokens,
    created_at, written_at, expires_at, accessed_at, accesses, summary, compressed, meta, flags)
VALUES (:workspace, :owner, :kind, :sha256, :ref_id, :removed, :size, :tokens, :created_at,
    :written_at, :expires_at, :accessed_at, :accesses, :summary, :compressed, :meta, :flags)

-- part: update_ref (sqlite)
UPDATE refs AS r SET tokens = :tokens, written_at = :written_at, expires_at = :expires_at,
    flagged = :flags <> '[]', detail = :detail
WHERE {of_ref}

-- part: update_ref (postgres)
UPDATE holdfast.refs AS r SET tokens = :tokens, written_at = :written_at, expires_at = :expires_at,
    summary = :summary, compressed = :compressed, meta = :meta, flags = :flags
WHERE {of_ref}

-- part: insert_use (sqlite)
INSERT OR IGNORE INTO uses (workspace, owner, session, ref)
SELECT :workspace, :owner, :used_in, r.id FROM refs AS r WHERE {of_ref}

-- part: insert_use (postgres)
INSERT INTO holdfast.uses (workspace, username, sha256, kind, session)
VALUES (:workspace, :owner, :sha256, :kind, :used_in) ON CONFLICT DO NOTHING

-- part: insert_entry (sqlite)
INSERT INTO audit (workspace, owner, at, entry) VALUES (:workspace, :owner, :at, :entry)

-- part: insert_entry (postgres)
INSERT INTO holdfast.audit (workspace, username, at, session, ref_id, sha256, action, size,
    from_tokens, to_tokens, flags)
VALUES (:workspace, :owner, :at, :used_in, :ref_id, :sha256, :action, :size, :from_tokens,
    :to_tokens, :flags)

-- name: add
{insert_ref}

-- name: use
{insert_use}

-- name: add_entry
{insert_entry}

-- Of content that is stored for the first time, and of known content: all that `put` writes.

-- name: put_new (sqlite)
{insert_ref};
{insert_use};
{insert_entry}

-- name: put_new (postgres)
WITH put AS ({insert_ref}), used AS ({insert_use}) {insert_entry}

-- name: put_known (sqlite)
{update_ref};
{insert_use};
{insert_entry}

-- name: put_known (postgres)
WITH put AS ({update_ref}), used AS ({insert_use}) {insert_entry}

-- name: note_access (sqlite)
UPDATE refs AS r SET accesses = accesses + 1, accessed_at = :now WHERE {of_ref};
INSERT OR IGNORE INTO uses (workspace, owner, session, ref)
SELECT :workspace, :owner, :session, r.id FROM refs AS r WHERE {of_ref} AND :session <> ''

-- name: note_access (postgres)
WITH opened AS (
    UPDATE holdfast.refs AS r SET accesses = accesses + 1, accessed_at = :now
    WHERE {of_ref} RETURNING *
)
INSERT INTO holdfast.uses (workspace, username, sha256, kind, session)
SELECT workspace, username, sha256, kind, :session FROM opened WHERE :session <> ''
ON CONFLICT DO NOTHING

-- name: set_detail (sqlite)
UPDATE refs AS r SET detail = :detail WHERE {of_ref}

-- name: set_detail (postgres)
UPDATE holdfast.refs AS r SET summary = :summary, compressed = :compressed WHERE {of_ref}

-- name: with_numbers
SELECT {row} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner AND {number} IN :numbers ORDER BY {number}

-- name: remove_content (sqlite)
UPDATE refs AS r SET content = NULL, detail = :detail WHERE {of_ref}

-- name: remove_content (postgres)
UPDATE holdfast.refs AS r SET removed = true, compressed = '' WHERE {of_ref}

-- name: newest
SELECT {row} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner AND {is_there}
AND {number} < :below ORDER BY {number} DESC LIMIT :limit

-- name: newest_of_kind
SELECT {row} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner AND {is_there}
AND r.kind = :kind AND {number} < :below ORDER BY {number} DESC LIMIT :limit

-- name: newest_of_session (sqlite)
SELECT {row} FROM uses AS u CROSS JOIN refs AS r ON r.id = u.ref {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner AND {is_there}
AND :kind IN ('', r.kind) AND u.workspace = :workspace AND u.owner = :owner
AND u.session = :session AND u.ref < :below ORDER BY u.ref DESC LIMIT :limit

-- name: newest_of_session (postgres)
SELECT {row} FROM holdfast.uses AS u
JOIN holdfast.refs AS r USING (workspace, username, sha256, kind) {join_content}
WHERE u.workspace = :workspace AND u.username = :owner AND u.session = :session AND {is_there}
AND :kind IN ('', r.kind) AND r.number < :below ORDER BY r.number DESC LIMIT :limit

-- With `+` SQLite uses no index for the workspaces: refs are read from the newest on, and of most
-- users only as many as are wanted. With an index, all of them would be sorted.

-- name: newest_of_many (sqlite)
SELECT r.workspace, {row} FROM refs AS r {join_content}
WHERE r.owner = :owner AND +r.workspace IN :workspaces AND {is_there}
AND :kind IN ('', r.kind) AND r.id < :below ORDER BY r.id DESC LIMIT :limit

-- name: newest_of_many (postgres)
SELECT r.workspace, {row} FROM holdfast.refs AS r {join_content}
WHERE r.username = :owner AND r.workspace IN :workspaces AND {is_there}
AND :kind IN ('', r.kind) AND r.number < :below ORDER BY r.number DESC LIMIT :limit

-- name: only_of_session (sqlite)
SELECT {row} FROM uses AS u CROSS JOIN refs AS r ON r.id = u.ref {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner
AND u.workspace = :workspace AND u.owner = :owner AND u.session = :session
AND NOT EXISTS (SELECT 1 FROM uses AS o WHERE o.ref = u.ref AND o.session <> u.session)
ORDER BY r.id

-- name: only_of_session (postgres)
SELECT {row} FROM holdfast.uses AS u
JOIN holdfast.refs AS r USING (workspace, username, sha256, kind) {join_content}
WHERE u.workspace = :workspace AND u.username = :owner AND u.session = :session
AND NOT EXISTS (
    SELECT 1 FROM holdfast.uses AS o
    WHERE (o.workspace, o.username, o.sha256, o.kind)
        = (u.workspace, u.username, u.sha256, u.kind) AND o.session <> u.session)
ORDER BY r.number

-- name: remove
DELETE FROM holdfast.refs AS r WHERE r.workspace = :workspace AND r.owner = :owner
AND r.sha256 IN :hashes AND r.sha256 || ' ' || r.kind IN :keys
RETURNING sha256

-- name: exported
SELECT {row}, {content} FROM holdfast.refs AS r {join_content}
WHERE r.workspace = :workspace AND r.owner = :owner AND {number} > :after
ORDER BY {number} LIMIT :limit

-- name: uses (sqlite)
SELECT r.id, u.session FROM refs AS r JOIN uses AS u ON u.ref = r.id
WHERE r.workspace = :workspace AND r.owner = :owner AND r.id IN :numbers ORDER BY u.session

-- name: uses (postgres)
SELECT r.number, u.session FROM holdfast.refs AS r
JOIN holdfast.uses AS u USING (workspace, username, sha256, kind)
WHERE r.workspace = :workspace AND r.username = :owner AND r.number IN :numbers
ORDER BY u.session

-- part: entry (sqlite)
a.entry, a.id

-- part: entry (postgres)
json_build_object('at', a.at, 'session', a.session, 'ref_id', a.ref_id, 'sha256', a.sha256,
    'action', a.action, 'size', a.size, 'from_tokens', a.from_tokens, 'to_tokens', a.to_tokens,
    'flags', a.flags::json)::text, a.number

-- name: entries (sqlite)
SELECT a.entry FROM audit AS a WHERE a.workspace = :workspace AND a.owner = :owner
ORDER BY a.at DESC, a.id DESC LIMIT :limit OFFSET :before

-- name: entries (postgres)
SELECT {entry} FROM holdfast.audit AS a WHERE a.workspace = :workspace AND a.username = :owner
ORDER BY a.at DESC, a.number DESC LIMIT :limit OFFSET :before

-- name: exported_entries (sqlite)
SELECT {entry}, a.at FROM audit AS a WHERE a.workspace = :workspace AND a.owner = :owner
AND (a.at, a.id) > (:at, :number) ORDER BY a.at, a.id LIMIT :limit

-- name: exported_entries (postgres)
SELECT {entry}, a.at FROM holdfast.audit AS a WHERE a.workspace = :workspace AND a.username = :owner
AND (a.at, a.number) > (:at, :number) ORDER BY a.at, a.number LIMIT :limit

-- name: has_entry (sqlite)
SELECT 1 FROM audit WHERE workspace = :workspace AND owner = :owner AND at = :at AND entry = :entry

-- name: has_entry (postgres)
SELECT 1 FROM holdfast.audit
WHERE (workspace, username, at, session, ref_id, sha256, action, size, from_tokens, to_tokens,
    flags) = (:workspace, :owner, :at, :used_in, :ref_id, :sha256, :action, :size, :from_tokens,
    :to_tokens, :flags)

-- What goes with a ref.

-- name: remove_jobs
DELETE FROM holdfast.jobs
WHERE workspace = :workspace AND owner = :owner AND ref_id IN :refs AND ref_id <> ''

-- name: remove_answers (sqlite)
DELETE FROM answers WHERE workspace = :workspace AND owner = :owner
AND number IN (SELECT answer FROM answer_refs WHERE ref_id IN :refs)

-- name: remove_answers (postgres)
DELETE FROM holdfast.answers
WHERE workspace = :workspace AND username = :owner AND refs <> '{}' AND refs && :refs::text[]
