-- Jobs for the background, what they cost, and the clock that their leases are measured by.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    ref_id TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    most_cost INTEGER NOT NULL,
    cost INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL,
    completed_at REAL,
    due REAL,                          -- in ticks; NULL: it runs, or it is over
    lease_until REAL,                  -- in ticks
    token TEXT,                        -- of the last claim
    debited_on TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX jobs_by_key ON jobs (workspace, owner, kind, key);
-- Only what is to be done, so that a million jobs that are over do not slow a claim.
CREATE INDEX jobs_due ON jobs (kind, priority, due) WHERE due IS NOT NULL;
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_over ON jobs (completed_at) WHERE due IS NULL AND state <> 'running';
CREATE INDEX jobs_of_session ON jobs (workspace, owner, session) WHERE session <> '';
CREATE INDEX jobs_of_ref ON jobs (workspace, owner, ref_id) WHERE ref_id <> '';

CREATE TABLE quotas (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,                -- `day 2026-01-31`, `session …`
    spent INTEGER NOT NULL,
    PRIMARY KEY (workspace, owner, name)
) WITHOUT ROWID;

CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot TEXT NOT NULL,                -- which start of the machine
    ahead REAL NOT NULL,               -- of the seconds since then, the ticks
    seen REAL NOT NULL                 -- the latest ticks: after the next start they go on from here
);
