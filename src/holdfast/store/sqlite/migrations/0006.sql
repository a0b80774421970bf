-- What was said, turn by turn, to be recalled. Beside a turn lies what recall has read in it.
CREATE TABLE remembered (
    place INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of remembering
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,           -- its place in the session
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    at REAL NOT NULL,
    tokens INTEGER NOT NULL,
    print TEXT NOT NULL,               -- by which a message without an id is known again
    maker TEXT NOT NULL,               -- of the index
    indexed BLOB NOT NULL,
    sha256 TEXT NOT NULL,              -- of the content
    size INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    data BLOB NOT NULL                 -- last: large values spill over to pages of their own
);
CREATE UNIQUE INDEX remembered_by_id ON remembered (workspace, owner, id, session);
CREATE INDEX remembered_of_session ON remembered (workspace, owner, session, number);
CREATE INDEX remembered_in_order ON remembered (workspace, owner, place);

-- Equal numbers mean equal turns: so whoever holds them in memory sees what others changed.
CREATE TABLE remembered_changes (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    PRIMARY KEY (workspace, owner)
) WITHOUT ROWID;

-- Words without their endings, for scopes too large to be held in memory. `scope` is one word that
-- stands for workspace and owner: so a search reads only what is theirs.
CREATE VIRTUAL TABLE remembered_words USING fts5 (
    scope, words, content = '', detail = column, tokenize = 'porter unicode61 remove_diacritics 2'
);
-- What is removed leaves no word behind.
INSERT INTO remembered_words (remembered_words, rank) VALUES ('secure-delete', 1);
