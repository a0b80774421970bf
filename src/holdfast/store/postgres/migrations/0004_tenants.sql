-- Sessions that began with the messages of another, and the key that names of tenants are made with.
ALTER TABLE holdfast.sessions
    ADD COLUMN forked_from text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN shared bigint NOT NULL DEFAULT 0;
CREATE TABLE holdfast.secrets (
    name text COLLATE "C" PRIMARY KEY,
    data bytea NOT NULL
);
