-- Turns without an answer are counted apart: they save nothing, and cost what was reported of them.

ALTER TABLE holdfast.turns ADD COLUMN failed boolean NOT NULL DEFAULT false;
