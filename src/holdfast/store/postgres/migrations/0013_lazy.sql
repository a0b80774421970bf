-- How requests with very many tools went: schemas that were set aside, searches, calls of tools.
ALTER TABLE holdfast.turns
    ADD COLUMN lazy_saved bigint NOT NULL DEFAULT 0,
    ADD COLUMN tool_searches bigint NOT NULL DEFAULT 0,
    ADD COLUMN tool_calls bigint NOT NULL DEFAULT 0,
    ADD COLUMN lazy_calls bigint NOT NULL DEFAULT 0;
