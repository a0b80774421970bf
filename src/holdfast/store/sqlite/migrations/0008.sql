-- Answers that may be given again. They can be asked for again: what is past its time or damaged is
-- as good as missing.
CREATE TABLE answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    signature TEXT NOT NULL,
    session TEXT NOT NULL,
    embedder TEXT NOT NULL,
    vector BLOB NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    hits INTEGER NOT NULL,
    last_hit_at REAL,
    sha256 TEXT NOT NULL,              -- of prompt and answer together
    size INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX answers_by_id ON answers (workspace, owner, id);
CREATE INDEX answers_alike ON answers (workspace, owner, signature, embedder, number)
    WHERE embedder <> '';
CREATE INDEX answers_by_end ON answers (workspace, owner, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX answers_of_session ON answers (workspace, owner, session) WHERE session <> '';

-- The contents that an answer was made from: with any of them it goes.
CREATE TABLE answer_refs (
    answer INTEGER NOT NULL REFERENCES answers (number) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    ref_id TEXT NOT NULL,
    PRIMARY KEY (answer, place)
) WITHOUT ROWID;
CREATE INDEX answer_refs_by_ref ON answer_refs (ref_id);

-- Turns that were answered from memory: nothing went out, and nobody was billed.
ALTER TABLE turns ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
