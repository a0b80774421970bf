-- Turns without an answer are listed, the newest first, and are few.
CREATE INDEX turns_failed ON holdfast.turns (workspace, username, started_at) WHERE failed;
