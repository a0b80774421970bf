-- Tools and their schemas, as they were pinned. A tool that is changed gets a new number.
CREATE TABLE holdfast.tools (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    server_name text COLLATE "C" NOT NULL,
    tool_name text COLLATE "C" NOT NULL,
    schema_hash text COLLATE "C" NOT NULL,
    token_count bigint NOT NULL,
    version bigint NOT NULL,
    uses bigint NOT NULL,
    used_at double precision,
    updated_at double precision NOT NULL,
    sha256 text COLLATE "C" NOT NULL,  -- of the schema and what was read in it, together
    size bigint NOT NULL,
    codec smallint NOT NULL,
    data bytea NOT NULL
) WITH (fillfactor = 80);  -- a use changes its row
ALTER TABLE holdfast.tools ALTER COLUMN data SET STORAGE EXTERNAL;  -- compressed already
CREATE UNIQUE INDEX tools_by_name
    ON holdfast.tools (workspace, username, server_name, tool_name);
CREATE INDEX tools_in_order ON holdfast.tools (workspace, username, number);
