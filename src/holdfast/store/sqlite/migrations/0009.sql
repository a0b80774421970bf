-- The owners who have jobs that wait, so that they can take turns.
CREATE INDEX jobs_in_turn ON jobs (kind, priority, workspace, owner, due) WHERE due IS NOT NULL;
