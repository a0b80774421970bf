-- What was said, turn by turn, to be recalled. Beside a turn lies what recall has read in it.
CREATE TABLE holdfast.remembered (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the order of remembering
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number bigint NOT NULL,  -- its place in the session
    role text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    at double precision NOT NULL,
    tokens bigint NOT NULL,
    print text COLLATE "C" NOT NULL,  -- by which a message without an id is known again
    maker text COLLATE "C" NOT NULL,  -- of the index
    indexed bytea NOT NULL,
    sha256 text COLLATE "C" NOT NULL,  -- of the content
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL,
    words tsvector NOT NULL  -- without their endings, for scopes too large to be held in memory
);
ALTER TABLE holdfast.remembered ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already
CREATE UNIQUE INDEX remembered_by_id ON holdfast.remembered (workspace, username, id, session);
CREATE INDEX remembered_of_session
    ON holdfast.remembered (workspace, username, session, number, place);
CREATE INDEX remembered_in_order ON holdfast.remembered (workspace, username, place);
CREATE INDEX remembered_words ON holdfast.remembered USING gin (words);

-- Equal numbers mean equal turns: so whoever holds them in memory sees what others changed.
CREATE TABLE holdfast.remembered_changes (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    added bigint NOT NULL,
    removed bigint NOT NULL,
    PRIMARY KEY (workspace, username)
) WITH (fillfactor = 50);
