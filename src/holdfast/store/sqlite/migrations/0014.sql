-- The client's own ids of its session and subagent: two agents may begin with the same messages.
-- What a side request was for.
ALTER TABLE sessions ADD COLUMN client_session TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN client_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN purpose TEXT NOT NULL DEFAULT '';
DROP INDEX sessions_by_head;
CREATE INDEX sessions_by_head
    ON sessions (workspace, owner, head, client_session, client_agent) WHERE closed_at IS NULL;
CREATE INDEX sessions_by_client
    ON sessions (workspace, owner, client_session, updated_at, session, purpose);
