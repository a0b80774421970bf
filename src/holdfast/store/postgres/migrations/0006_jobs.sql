-- Jobs for the background, and what they cost. Times are those of the server's clock.
CREATE TABLE holdfast.jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    ref_id text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    most_cost bigint NOT NULL,
    cost bigint NOT NULL DEFAULT 0,
    error text NOT NULL DEFAULT '',
    created_at double precision NOT NULL,
    completed_at double precision,
    due double precision,  -- NULL: it runs, or it is over
    lease_until double precision,
    token text COLLATE "C",  -- of the last claim
    debited_on text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);  -- rows change a few times each
CREATE UNIQUE INDEX jobs_by_key ON holdfast.jobs (workspace, username, kind, key);
-- Only what is to be done, so that a million jobs that are over do not slow a claim.
CREATE INDEX jobs_due ON holdfast.jobs (kind, priority, due, id) WHERE due IS NOT NULL;
CREATE INDEX jobs_leased ON holdfast.jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_over ON holdfast.jobs (completed_at) WHERE due IS NULL AND state <> 'running';
CREATE INDEX jobs_of_session ON holdfast.jobs (workspace, username, session) WHERE session <> '';
CREATE INDEX jobs_of_ref ON holdfast.jobs (workspace, username, ref_id) WHERE ref_id <> '';

CREATE TABLE holdfast.quotas (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,  -- `day 2026-01-31`, `session …`
    spent bigint NOT NULL,
    PRIMARY KEY (workspace, username, name)
) WITH (fillfactor = 50);

-- Now by the server's clock, unless a test has set it. `statement_timestamp` stays the same within
-- a statement: with `clock_timestamp` no index would be used.
CREATE FUNCTION holdfast.now_or(given double precision) RETURNS double precision
    LANGUAGE sql STABLE
    AS $$ SELECT coalesce(given, extract(epoch FROM statement_timestamp())::double precision) $$;
CREATE FUNCTION holdfast.day_of(at double precision) RETURNS text
    LANGUAGE sql STABLE
    AS $$ SELECT to_char(to_timestamp(at) AT TIME ZONE 'UTC', 'YYYY-MM-DD') $$;
