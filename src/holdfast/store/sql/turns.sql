-- Remembered turns, the words by which they are found, and how often the turns of a user changed.

-- part: mine
workspace = :workspace AND owner = :owner

-- part: content (sqlite)
sha256, size, codec, CAST(data AS BLOB)

-- part: content (postgres)
sha256, size, codec, data

-- part: turn
id, session, role, at, name, number, tokens, {content}

-- part: indexed (sqlite)
place, session, role, name, number, at, maker, CAST(indexed AS BLOB)

-- part: indexed (postgres)
place, session, role, name, number, at, maker, indexed

-- Turns of one user are numbered and counted one after the other, so that places come in order.

-- name: lock (sqlite)

-- name: lock (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(
    length(:workspace)::text || ':' || :workspace || ' ' || length(:owner)::text || ':' || :owner,
    72))

-- name: first
SELECT print, id FROM holdfast.remembered WHERE {mine} AND session = :session
ORDER BY number, place LIMIT :limit

-- name: last
SELECT print, id FROM holdfast.remembered WHERE {mine} AND session = :session
ORDER BY number DESC, place DESC LIMIT :limit

-- name: known_ids
SELECT id FROM holdfast.remembered WHERE {mine} AND session = :session AND id IN :ids

-- name: last_number
SELECT coalesce(max(number), 0) FROM holdfast.remembered WHERE {mine} AND session = :session

-- name: add (sqlite)
INSERT INTO remembered (
    workspace, owner, id, session, number, role, name, at, tokens, print, maker, indexed,
    sha256, size, codec, data)
VALUES (:workspace, :owner, :id, :said_in, :number, :role, :name, :at, :tokens, :print, :maker,
    :index, :sha256, :size, :codec, :data)
ON CONFLICT DO NOTHING

-- name: add (postgres)
INSERT INTO holdfast.remembered (
    workspace, owner, id, session, number, role, name, at, tokens, print, maker, indexed,
    sha256, size, codec, data, words)
VALUES (:workspace, :owner, :id, :said_in, :number, :role, :name, :at, :tokens, :print, :maker,
    :index, :sha256, :size, :codec, :data, to_tsvector('english', :words))
ON CONFLICT DO NOTHING RETURNING place

-- On SQLite, between inserts into the index of words, RETURNING took 20 us, and this takes 2.

-- name: added (sqlite)
SELECT last_insert_rowid() WHERE changes() > 0

-- name: added (postgres)

-- PostgreSQL keeps the words in the turn's row; SQLite in an index of their own, from which a turn
-- is removed by giving it the words that it was given.

-- name: add_words (sqlite)
INSERT INTO remembered_words (rowid, scope, words) VALUES (:place, :scope_word, :words)

-- name: add_words (postgres)

-- name: remove_words (sqlite)
INSERT INTO remembered_words (remembered_words, rowid, scope, words)
VALUES ('delete', :place, :scope_word, :words)

-- name: remove_words (postgres)

-- part: removed_content (sqlite)
{content}

-- part: removed_content (postgres)
'', 0, 0, NULL

-- name: index_anew
UPDATE holdfast.remembered SET maker = :maker, indexed = :index
WHERE {mine} AND session = :session AND id = :id AND maker <> :maker RETURNING place

-- name: note
INSERT INTO holdfast.remembered_changes AS c (workspace, owner, added, removed)
VALUES (:workspace, :owner, :added, :removed)
ON CONFLICT (workspace, owner) DO UPDATE
SET added = c.added + excluded.added, removed = c.removed + excluded.removed

-- name: changes
SELECT added, removed FROM holdfast.remembered_changes WHERE {mine}

-- name: indexed
SELECT {indexed} FROM holdfast.remembered
WHERE {mine} AND place > :after ORDER BY place LIMIT :limit

-- With a session, turns of other sessions are among the candidates on SQLite: hence `:candidates`.

-- name: with_words (sqlite)
SELECT {indexed} FROM (
    SELECT rowid, rank AS worth FROM remembered_words WHERE remembered_words MATCH :query
    ORDER BY rank LIMIT :candidates) AS matching
JOIN remembered AS r ON r.place = matching.rowid
WHERE {mine} AND :session IN ('', r.session) ORDER BY worth

-- Of each word 5,000 turns are looked at, and of a question 40 words, the longest, which are rarer
-- than the short: to rank all turns that hold any word took ten seconds among a million turns, for
-- common words are in most of them. A word as a query stands in quotes (39), where a quote and a
-- backslash (92) within it stand twice.

-- name: with_words (postgres)
WITH asked AS MATERIALIZED (
    SELECT chr(39) || replace(replace(word, chr(92), repeat(chr(92), 2)), chr(39),
        repeat(chr(39), 2)) || chr(39) AS word
    FROM unnest(tsvector_to_array(to_tsvector('english', :words))) AS word
    ORDER BY length(word) DESC, word LIMIT 40
), holding AS MATERIALIZED (
    SELECT place, count(*) OVER (PARTITION BY word) AS turns
    FROM asked, LATERAL (
        SELECT place FROM holdfast.remembered
        WHERE {mine} AND :session IN ('', session) AND words @@ word::tsquery
        LIMIT 5000
    ) AS of_word
), likely AS (
    SELECT place, sum(1.0 / turns) AS worth FROM holding
    GROUP BY place ORDER BY worth DESC, place LIMIT :limit
)
SELECT {indexed} FROM likely JOIN holdfast.remembered USING (place) ORDER BY worth DESC, place

-- name: at_places
SELECT place, {turn} FROM holdfast.remembered WHERE {mine} AND place IN :places

-- name: recent
SELECT {turn} FROM holdfast.remembered
WHERE {mine} AND session = :session AND (:before = 0 OR number < :before)
ORDER BY number DESC, place DESC LIMIT :limit

-- name: filtered
SELECT place, {turn} FROM holdfast.remembered
WHERE {mine} AND place > :after
  AND (:has_any_id OR id IN :ids) AND (:is_any_session OR session = :said_in)
  AND at < :before AND at >= :since
ORDER BY place LIMIT :limit

-- name: page (sqlite)
SELECT place, print, maker, CAST(indexed AS BLOB), {turn} FROM remembered
WHERE {mine} AND place > :after ORDER BY place LIMIT :limit

-- name: page (postgres)
SELECT place, print, maker, indexed, {turn} FROM holdfast.remembered
WHERE {mine} AND place > :after ORDER BY place LIMIT :limit

-- name: remove
DELETE FROM holdfast.remembered WHERE {mine} AND place IN :places
RETURNING place, {removed_content}, session, id

-- name: remove_some
DELETE FROM holdfast.remembered
WHERE {mine} AND place IN (SELECT place FROM holdfast.remembered WHERE {mine} LIMIT :limit)
RETURNING place, {removed_content}

-- name: remove_of_session
DELETE FROM holdfast.remembered WHERE {mine} AND place IN (
    SELECT place FROM holdfast.remembered WHERE {mine} AND session = :session LIMIT :limit)
RETURNING place, {removed_content}
