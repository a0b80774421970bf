-- Who sent a session, the client's own ids of it, and what a side request was for.
ALTER TABLE holdfast.sessions
    ADD COLUMN client text NOT NULL DEFAULT '',
    ADD COLUMN client_session text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN client_agent text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN purpose text NOT NULL DEFAULT '';
DROP INDEX holdfast.sessions_by_head;
CREATE INDEX sessions_by_head
    ON holdfast.sessions (workspace, username, head, client_session, client_agent)
    WHERE closed_at IS NULL AND head <> '';
CREATE INDEX sessions_by_client
    ON holdfast.sessions (workspace, username, client_session, updated_at, session, purpose);
