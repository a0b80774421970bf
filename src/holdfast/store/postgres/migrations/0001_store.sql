-- Contents behind refs, sessions with their turns, usage, calibration and audit.
-- Names and hashes are compared byte by byte, whatever the database's locale is.

CREATE TABLE holdfast.contents (
    workspace text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL,
    damage text,  -- why it is set apart
    PRIMARY KEY (workspace, sha256)
);
-- The data is compressed already.
ALTER TABLE holdfast.contents ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE holdfast.refs (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    ref_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    tokens bigint NOT NULL,
    summary text NOT NULL,
    compressed text NOT NULL,
    meta text NOT NULL,  -- JSON
    flags text[] NOT NULL,
    created_at double precision NOT NULL,
    written_at double precision NOT NULL,
    expires_at double precision,
    accessed_at double precision,
    accesses bigint NOT NULL,
    removed boolean NOT NULL DEFAULT false,
    number bigint GENERATED ALWAYS AS IDENTITY,  -- which of two refs is newer
    PRIMARY KEY (workspace, username, ref_id)
);
