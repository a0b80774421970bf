-- Turns without an answer are counted apart: they save nothing, and cost what was reported of them.

ALTER TABLE turns ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
