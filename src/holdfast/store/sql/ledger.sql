-- Daily use of tenants, and reservations of calls under way.

-- part: mine
workspace = :workspace AND owner = :owner

-- Whoever writes holds a lock on the tenant: read committed alone would see the reservation of a
-- settled call removed, and its use not yet added.

-- name: lock (sqlite)

-- name: lock (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(
    'daily use' || chr(10) || :workspace || chr(10) || :owner, 0))

-- name: day_use
SELECT (SELECT tokens FROM holdfast.daily_usage WHERE {mine} AND day = :day),
    (SELECT dollars FROM holdfast.daily_usage WHERE {mine} AND day = :day),
    coalesce(sum(tokens), 0), coalesce(sum(dollars), 0), count(*)
FROM holdfast.reservations WHERE {mine} AND day = :day

-- name: remove_expired
DELETE FROM holdfast.reservations WHERE {mine} AND expires_at <= :now
RETURNING day, least_tokens, least_dollars

-- name: add_use
INSERT INTO holdfast.daily_usage AS d (workspace, owner, day, tokens, dollars)
VALUES (:workspace, :owner, :day, :tokens, :dollars)
ON CONFLICT (workspace, owner, day)
DO UPDATE SET tokens = d.tokens + excluded.tokens, dollars = d.dollars + excluded.dollars

-- name: remove_days
DELETE FROM holdfast.daily_usage WHERE {mine} AND day < :before

-- name: reserve
INSERT INTO holdfast.reservations (
    workspace, owner, token, day, tokens, dollars, least_tokens, least_dollars, expires_at)
VALUES (:workspace, :owner, :token, :day, :tokens, :dollars, :least_tokens, :least_dollars,
    :expires_at)
ON CONFLICT DO NOTHING RETURNING token

-- name: renew
UPDATE holdfast.reservations SET expires_at = :expires_at WHERE {mine} AND token = :token

-- name: settle
DELETE FROM holdfast.reservations WHERE {mine} AND token = :token RETURNING token
