-- Journals: what was done, entry behind entry, so that it can be gone on from.
CREATE TABLE journal (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    sequence INTEGER NOT NULL,         -- from 1 on, without gaps
    at REAL NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (workspace, owner, session, name, sequence)
);
