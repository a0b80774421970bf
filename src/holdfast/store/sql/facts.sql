-- Facts, where each was said, and the counts by which indexes notice that they are out of date.

-- part: sources (sqlite)
SELECT json_group_array(json_array(s.ref, s.place, s.session) ORDER BY s.number)
FROM holdfast.fact_sources AS s WHERE s.fact = f.number

-- part: sources (postgres)
SELECT json_agg(json_build_array(s.ref, s.place, s.session) ORDER BY s.number)::text
FROM holdfast.fact_sources AS s WHERE s.fact = f.number

-- part: sessions (sqlite)
SELECT json_group_array(DISTINCT session) FROM holdfast.fact_sources WHERE fact = f.number

-- part: sessions (postgres)
SELECT json_agg(DISTINCT session)::text FROM holdfast.fact_sources WHERE fact = f.number

-- part: has_tag (sqlite)
EXISTS (SELECT 1 FROM json_each(f.tags) WHERE value = :tag)

-- part: has_tag (postgres)
f.tags ? :tag

-- part: whole_facts
SELECT f.key, f.id, f.kind, f.text, f.subject, f.said_by, f.tags, f.standing, f.created_at,
    f.decay_weight, f.superseded_by, ({sources})
FROM holdfast.facts AS f WHERE f.workspace = :workspace AND f.owner = :owner

-- name: by_id
{whole_facts} AND f.id IN :ids

-- name: by_id_unless_changed
{whole_facts} AND f.id IN :ids AND :counter = (
    SELECT coalesce(max(counter), 0) FROM holdfast.fact_counters
    WHERE workspace = :workspace AND owner = :owner)

-- name: page
{whole_facts} AND f.id > :after ORDER BY f.id LIMIT :limit

-- name: replaced_by
{whole_facts} AND f.superseded_by <> '' AND f.superseded_by IN :ids ORDER BY f.id

-- name: latest
{whole_facts}
AND :kind IN ('', f.kind) AND (:tag = '' OR {has_tag})
AND (NOT :current OR f.superseded_by = '')
AND (:session = '' OR EXISTS (
    SELECT 1 FROM holdfast.fact_sources AS s WHERE s.fact = f.number AND s.session = :session))
ORDER BY f.created_at DESC, f.id LIMIT :limit

-- name: same
{whole_facts} AND f.superseded_by = '' AND f.key = :key

-- name: of_subject
{whole_facts} AND f.superseded_by = '' AND f.subject <> '' AND f.subject = :subject

-- name: is_known
SELECT 1 FROM holdfast.facts WHERE workspace = :workspace AND owner = :owner
AND (id = :id OR (:current AND superseded_by = '' AND key = :key))

-- name: changed
SELECT id, kind, text, subject, said_by, tags, standing, created_at, decay_weight, superseded_by,
    ({sessions}), embedder, vector
FROM holdfast.facts AS f
WHERE workspace = :workspace AND owner = :owner
AND version > :since AND (:since > 0 OR superseded_by = '')

-- name: ids
SELECT id FROM holdfast.facts WHERE workspace = :workspace AND owner = :owner

-- name: texts
SELECT id, key, text FROM holdfast.facts WHERE workspace = :workspace AND owner = :owner

-- name: counts
SELECT counter, purged FROM holdfast.fact_counters WHERE workspace = :workspace AND owner = :owner

-- name: count_up
INSERT INTO holdfast.fact_counters AS c (workspace, owner, counter, purged)
VALUES (:workspace, :owner, 1, CASE WHEN :purges THEN 1 ELSE 0 END)
ON CONFLICT (workspace, owner) DO UPDATE SET counter = c.counter + 1,
    purged = CASE WHEN :purges THEN c.counter + 1 ELSE c.purged END
RETURNING counter

-- name: write
INSERT INTO holdfast.facts (
    workspace, owner, id, kind, text, key, subject, said_by, tags, standing, created_at,
    decay_weight, superseded_by, version, embedder, vector)
VALUES (:workspace, :owner, :id, :kind, :text, :key, :subject, :said_by, :tags, :standing,
    :created_at, :decay_weight, :superseded_by, :version, :embedder, :vector)
ON CONFLICT (workspace, owner, id) DO UPDATE
SET subject = excluded.subject, tags = excluded.tags, standing = excluded.standing,
    created_at = excluded.created_at, decay_weight = excluded.decay_weight,
    superseded_by = excluded.superseded_by, version = excluded.version
RETURNING number

-- name: supersede
UPDATE holdfast.facts SET superseded_by = :by, version = :version
WHERE workspace = :workspace AND owner = :owner AND id IN :ids

-- name: add_source
INSERT INTO holdfast.fact_sources (workspace, owner, fact, session, ref, place)
VALUES (:workspace, :owner, :fact, :said_in, :ref, :place)

-- name: clear_sources
DELETE FROM holdfast.fact_sources WHERE fact = :fact

-- name: remove
DELETE FROM holdfast.facts WHERE workspace = :workspace AND owner = :owner AND id IN :ids
RETURNING id

-- name: drop_sources_of_refs
DELETE FROM holdfast.fact_sources
WHERE workspace = :workspace AND owner = :owner AND ref IN :refs RETURNING fact

-- name: drop_sources_of_turns
DELETE FROM holdfast.fact_sources
WHERE workspace = :workspace AND owner = :owner AND session = :said_in AND ref IN :ids
RETURNING fact

-- name: drop_sources_of_session
DELETE FROM holdfast.fact_sources
WHERE workspace = :workspace AND owner = :owner AND session <> '' AND session = :session
RETURNING fact

-- name: touch
UPDATE holdfast.facts SET version = :version WHERE number IN :numbers

-- name: remove_without_source
DELETE FROM holdfast.facts AS f WHERE number IN :numbers
AND NOT EXISTS (SELECT 1 FROM holdfast.fact_sources AS s WHERE s.fact = f.number)
RETURNING id
