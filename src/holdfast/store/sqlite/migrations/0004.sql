-- Summaries of contents, kept so that each is made once. They can be made again: what is past its
-- time or damaged is as good as missing.
CREATE TABLE summaries (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    source TEXT NOT NULL,              -- SHA-256 of the content it is of; empty: of none that is stored
    expires_at REAL,
    sha256 TEXT NOT NULL,              -- of the summary itself
    size INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace, owner, key)
) WITHOUT ROWID;
CREATE INDEX summaries_of_content ON summaries (workspace, owner, source) WHERE source <> '';
CREATE INDEX summaries_by_end ON summaries (workspace, owner, expires_at)
    WHERE expires_at IS NOT NULL;
