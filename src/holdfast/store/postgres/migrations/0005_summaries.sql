-- Summaries of contents, kept so that each is made once. They can be made again: what is past its
-- time or damaged is as good as missing.
CREATE TABLE holdfast.summaries (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,  -- SHA-256 of the content it is of; empty: of none stored
    expires_at double precision,
    sha256 text COLLATE "C" NOT NULL,  -- of the summary itself
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (workspace, username, key)
);
ALTER TABLE holdfast.summaries ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already
CREATE INDEX summaries_of_content ON holdfast.summaries (workspace, username, source)
    WHERE source <> '';
CREATE INDEX summaries_by_end ON holdfast.summaries (workspace, username, expires_at)
    WHERE expires_at IS NOT NULL;
