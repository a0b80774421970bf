-- Facts: what was said, as statements that stand on their own, and where each was said.
CREATE TABLE holdfast.facts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    text text NOT NULL CHECK (char_length(text) <= 500),
    key text COLLATE "C" NOT NULL,  -- SHA-256 of what the text says, whatever its case and spaces
    subject text COLLATE "C" NOT NULL,  -- what it is the one value of; empty: of nothing
    said_by text COLLATE "C" NOT NULL,
    tags jsonb NOT NULL,
    standing boolean NOT NULL,
    created_at double precision NOT NULL,
    decay_weight double precision NOT NULL,
    superseded_by text COLLATE "C" NOT NULL,  -- empty: it is current
    version bigint NOT NULL,  -- the count of changes when it last changed
    embedder text COLLATE "C" NOT NULL,
    vector bytea NOT NULL
);
CREATE UNIQUE INDEX facts_by_id ON holdfast.facts (workspace, username, id);
-- Two writers at once cannot make two of one.
CREATE UNIQUE INDEX facts_current ON holdfast.facts (workspace, username, key)
    WHERE superseded_by = '';
CREATE UNIQUE INDEX facts_of_subject ON holdfast.facts (workspace, username, subject, said_by)
    WHERE subject <> '' AND superseded_by = '';
CREATE INDEX facts_newest ON holdfast.facts (workspace, username, created_at);
CREATE INDEX facts_changed ON holdfast.facts (workspace, username, version);
CREATE INDEX facts_superseded ON holdfast.facts (workspace, username, superseded_by)
    WHERE superseded_by <> '';
CREATE INDEX facts_tags ON holdfast.facts USING gin (tags);

CREATE TABLE holdfast.fact_sources (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the order in which it was said
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    fact bigint NOT NULL REFERENCES holdfast.facts (number) ON DELETE CASCADE,
    session text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL
);
CREATE INDEX fact_sources_of_fact ON holdfast.fact_sources (fact);
CREATE INDEX fact_sources_of_session ON holdfast.fact_sources (workspace, username, session)
    WHERE session <> '';
CREATE INDEX fact_sources_of_ref ON holdfast.fact_sources (workspace, username, ref);

-- What tells other processes that an index of theirs is out of date. Whoever writes facts of a scope
-- holds its row to the end of the transaction: one after the other.
CREATE TABLE holdfast.fact_counters (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    counter bigint NOT NULL,
    purged bigint NOT NULL,  -- the count when facts were last forgotten
    PRIMARY KEY (workspace, username)
) WITH (fillfactor = 50);
