-- Answers that may be given again. They can be asked for again: what is past its time or damaged is
-- as good as missing.
CREATE TABLE holdfast.answers (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    signature text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    refs text[] COLLATE "C" NOT NULL,  -- the contents it was made from: with any of them it goes
    embedder text COLLATE "C" NOT NULL,
    vector bytea NOT NULL,
    created_at double precision NOT NULL,
    expires_at double precision,
    hits bigint NOT NULL,
    last_hit_at double precision,
    sha256 text COLLATE "C" NOT NULL,  -- of prompt and answer together
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL
) WITH (fillfactor = 80);  -- a hit changes its row
ALTER TABLE holdfast.answers ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already
CREATE UNIQUE INDEX answers_by_id ON holdfast.answers (workspace, username, id);
CREATE INDEX answers_alike ON holdfast.answers (workspace, username, signature, embedder, number)
    WHERE embedder <> '';
CREATE INDEX answers_by_end ON holdfast.answers (workspace, username, expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX answers_of_session ON holdfast.answers (workspace, username, session)
    WHERE session <> '';
CREATE INDEX answers_by_ref ON holdfast.answers USING gin (refs) WHERE refs <> '{}';

-- Turns that were answered from memory: nothing went out, and nobody was billed.
ALTER TABLE holdfast.turns ADD COLUMN answered boolean NOT NULL DEFAULT false;
