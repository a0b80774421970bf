-- Requests that exceed their model's window: without Holdfast nobody would have answered them.
ALTER TABLE turns ADD COLUMN overflows INTEGER NOT NULL DEFAULT 0;
