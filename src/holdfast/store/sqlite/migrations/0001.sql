-- Scope comes first in every key: a query that forgets it finds nothing fast enough to be missed.
-- "user" is `owner` here, because the word is reserved elsewhere.

CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    damage TEXT,                       -- why it is set apart
    data BLOB NOT NULL                 -- last: large values spill over to pages of their own
);
CREATE UNIQUE INDEX contents_by_hash ON contents (workspace, sha256);

CREATE TABLE refs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of storing
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    ref_id TEXT NOT NULL,
    content INTEGER REFERENCES contents (id),  -- NULL: removed
    size INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    created_at REAL NOT NULL,
    written_at REAL NOT NULL,
    expires_at REAL,
    accessed_at REAL,
    accesses INTEGER NOT NULL DEFAULT 0,
    flagged INTEGER NOT NULL,
    detail TEXT NOT NULL               -- JSON: summary, compressed, meta, flags
);
CREATE UNIQUE INDEX refs_by_hash ON refs (workspace, owner, sha256, kind);
CREATE INDEX refs_newest ON refs (workspace, owner) WHERE content IS NOT NULL;
CREATE INDEX refs_newest_of_kind ON refs (workspace, owner, kind) WHERE content IS NOT NULL;
CREATE INDEX refs_of_content ON refs (content) WHERE content IS NOT NULL;

CREATE TABLE uses (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,             -- empty: used without a session
    ref INTEGER NOT NULL REFERENCES refs (id) ON DELETE CASCADE,
    PRIMARY KEY (workspace, owner, session, ref)
) WITHOUT ROWID;
CREATE INDEX uses_of_ref ON uses (ref);

CREATE TABLE sessions (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    head TEXT NOT NULL,
    updated_at REAL NOT NULL,
    closed_at REAL,
    record TEXT NOT NULL,              -- JSON
    PRIMARY KEY (workspace, owner, session)
) WITHOUT ROWID;
CREATE INDEX sessions_latest ON sessions (workspace, owner, updated_at, session);
CREATE INDEX sessions_by_head ON sessions (workspace, owner, head) WHERE closed_at IS NULL;

CREATE TABLE turns (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    started_at REAL NOT NULL,
    model TEXT NOT NULL,
    predicted INTEGER NOT NULL,
    untouched INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    output INTEGER NOT NULL,
    expansions INTEGER NOT NULL,
    expansion_tokens INTEGER NOT NULL,
    cost REAL NOT NULL,
    saved_cost REAL NOT NULL,
    record TEXT NOT NULL               -- JSON
);
CREATE UNIQUE INDEX turns_by_number ON turns (workspace, owner, session, number);

CREATE TABLE messages (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents (id),
    PRIMARY KEY (workspace, owner, session, content)
) WITHOUT ROWID;
CREATE INDEX messages_of_content ON messages (content, owner);

CREATE TABLE calibrations (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace, owner)
) WITHOUT ROWID;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    at REAL NOT NULL,
    entry TEXT NOT NULL                -- JSON
);
CREATE INDEX audit_newest ON audit (workspace, owner, at);
