-- Tools and their schemas, as they were pinned. A tool that is changed is removed and added again,
-- so that its number is a new one: no number is given twice.
CREATE TABLE tools (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    server_name TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    schema_hash TEXT NOT NULL,
    token_count INTEGER NOT NULL,
    version INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    used_at REAL,
    updated_at REAL NOT NULL,
    sha256 TEXT NOT NULL,              -- of the schema and what was read in it, together
    size INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX tools_by_name ON tools (workspace, owner, server_name, tool_name);
CREATE INDEX tools_in_order ON tools (workspace, owner, number);
