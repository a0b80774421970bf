-- How requests with very many tools went: schemas that were set aside, searches, calls of tools.
ALTER TABLE turns ADD COLUMN lazy_saved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN tool_searches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN lazy_calls INTEGER NOT NULL DEFAULT 0;
