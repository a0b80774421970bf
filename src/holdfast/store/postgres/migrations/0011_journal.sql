-- Journals: what was done, entry behind entry, so that it can be gone on from.
CREATE TABLE holdfast.journal (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,          -- from 1 on, without gaps
    at double precision NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (workspace, username, session, name, sequence)
);
ALTER TABLE holdfast.journal ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already
