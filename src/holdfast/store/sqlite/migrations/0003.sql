-- What providers call the histories that they hold: ids of responses and of conversations.
CREATE TABLE links (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (workspace, owner, name)
) WITHOUT ROWID;
CREATE INDEX links_of_session ON links (workspace, owner, session);
