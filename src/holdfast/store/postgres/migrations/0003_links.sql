-- What providers call the histories that they hold: ids of responses and of conversations.
CREATE TABLE holdfast.links (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, username, name)
);
CREATE INDEX links_by_session ON holdfast.links (workspace, username, session);
