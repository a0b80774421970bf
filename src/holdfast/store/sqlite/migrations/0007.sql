-- Facts: what was said, as statements that stand on their own, and where each was said.
CREATE TABLE facts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL CHECK (length(text) <= 500),
    key TEXT NOT NULL,                 -- SHA-256 of what the text says, whatever its case and spaces
    subject TEXT NOT NULL,             -- what it is the one value of; empty: of nothing
    said_by TEXT NOT NULL,
    tags TEXT NOT NULL,                -- JSON
    standing INTEGER NOT NULL,
    created_at REAL NOT NULL,
    decay_weight REAL NOT NULL,
    superseded_by TEXT NOT NULL,       -- empty: it is current
    version INTEGER NOT NULL,          -- the count of changes when it last changed
    embedder TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE UNIQUE INDEX facts_by_id ON facts (workspace, owner, id);
-- Two writers at once cannot make two of one.
CREATE UNIQUE INDEX facts_current ON facts (workspace, owner, key) WHERE superseded_by = '';
CREATE UNIQUE INDEX facts_of_subject ON facts (workspace, owner, subject, said_by)
    WHERE subject <> '' AND superseded_by = '';
CREATE INDEX facts_newest ON facts (workspace, owner, created_at);
CREATE INDEX facts_changed ON facts (workspace, owner, version);
CREATE INDEX facts_superseded ON facts (workspace, owner, superseded_by) WHERE superseded_by <> '';

CREATE TABLE fact_sources (
    number INTEGER PRIMARY KEY,        -- the order in which it was said
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    fact INTEGER NOT NULL REFERENCES facts (number) ON DELETE CASCADE,
    session TEXT NOT NULL,
    ref TEXT NOT NULL,
    place TEXT NOT NULL
);
CREATE INDEX fact_sources_of_fact ON fact_sources (fact);
CREATE INDEX fact_sources_of_session ON fact_sources (workspace, owner, session)
    WHERE session <> '';
CREATE INDEX fact_sources_of_ref ON fact_sources (workspace, owner, ref);

-- What tells other processes that an index of theirs is out of date.
CREATE TABLE fact_counters (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    counter INTEGER NOT NULL,
    purged INTEGER NOT NULL,           -- the count when facts were last forgotten
    PRIMARY KEY (workspace, owner)
) WITHOUT ROWID;
