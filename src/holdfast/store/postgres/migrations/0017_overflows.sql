-- Requests that exceed their model's window: without Holdfast nobody would have answered them.
ALTER TABLE holdfast.turns ADD COLUMN overflows boolean NOT NULL DEFAULT false;
