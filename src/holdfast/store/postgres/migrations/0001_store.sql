-- Contents behind refs, sessions with their turns, usage, calibration and audit.
-- Names and hashes are compared byte by byte, whatever the locale of the database is.

CREATE TABLE holdfast.contents (
    workspace text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL,
    damage text,  -- why it is set apart
    PRIMARY KEY (workspace, sha256)
);
ALTER TABLE holdfast.contents ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already

CREATE TABLE holdfast.refs (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    ref_id text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    tokens bigint NOT NULL,
    summary text NOT NULL,
    compressed text NOT NULL,
    meta text NOT NULL,  -- JSON, as text: jsonb has no zero characters
    flags text NOT NULL,  -- JSON
    created_at double precision NOT NULL,
    written_at double precision NOT NULL,
    expires_at double precision,
    accessed_at double precision,
    accesses bigint NOT NULL DEFAULT 0,
    removed boolean NOT NULL DEFAULT false,
    number bigint GENERATED ALWAYS AS IDENTITY,  -- the order in which refs were stored
    PRIMARY KEY (workspace, username, sha256, kind),
    UNIQUE (workspace, username, ref_id)
);
CREATE INDEX refs_by_age ON holdfast.refs (workspace, username, number);
CREATE INDEX refs_by_content ON holdfast.refs (workspace, sha256) WHERE NOT removed;

CREATE TABLE holdfast.uses (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,  -- empty: a use without one
    PRIMARY KEY (workspace, username, sha256, kind, session),
    FOREIGN KEY (workspace, username, sha256, kind) REFERENCES holdfast.refs ON DELETE CASCADE
);
CREATE INDEX uses_by_session ON holdfast.uses (workspace, username, session);

CREATE TABLE holdfast.sessions (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    dialect text NOT NULL,
    model text NOT NULL,
    title text NOT NULL,
    head text COLLATE "C" NOT NULL,
    turns bigint NOT NULL,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    closed_at double precision,
    PRIMARY KEY (workspace, username, session)
);
CREATE INDEX sessions_by_use ON holdfast.sessions (workspace, username, updated_at, session);
CREATE INDEX sessions_by_head ON holdfast.sessions (workspace, username, head)
    WHERE closed_at IS NULL AND head <> '';

CREATE TABLE holdfast.turns (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    record text NOT NULL,  -- JSON; what is summed up stands beside it
    model text NOT NULL,
    started_at double precision NOT NULL,
    predicted bigint NOT NULL,
    untouched bigint NOT NULL,
    input bigint NOT NULL,
    cached bigint NOT NULL,
    output bigint NOT NULL,
    expansions bigint NOT NULL,
    expansion_tokens bigint NOT NULL,
    cost double precision,
    saved_cost double precision,
    PRIMARY KEY (workspace, username, session, number)
);
CREATE INDEX turns_by_time ON holdfast.turns (workspace, username, started_at);

-- Which sessions name a message or frame; its bytes lie among the contents.
CREATE TABLE holdfast.messages (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, username, sha256, session)
);
CREATE INDEX messages_by_session ON holdfast.messages (workspace, username, session);
CREATE INDEX messages_by_content ON holdfast.messages (workspace, sha256);

CREATE TABLE holdfast.calibrations (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (workspace, username)
);

CREATE TABLE holdfast.audit (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    at double precision NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    session text NOT NULL,
    ref_id text NOT NULL,
    sha256 text NOT NULL,
    action text NOT NULL,
    size bigint NOT NULL,
    from_tokens bigint NOT NULL,
    to_tokens bigint NOT NULL,
    flags text NOT NULL,  -- JSON
    PRIMARY KEY (workspace, username, at, number)
);
