-- Turns without an answer are listed, the newest first, and are few: each is found without a look at others.
CREATE INDEX turns_failed ON turns (workspace, owner, started_at) WHERE failed = 1;
