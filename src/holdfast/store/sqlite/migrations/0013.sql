-- Figures of the bill: cache writes by their price, list prices of the offline model's answers, and
-- which turns hold estimates. Turns of earlier versions had their savings estimated.
ALTER TABLE turns ADD COLUMN cache_written INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN cache_written_hour INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN demo_cost REAL NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN demo_saved_cost REAL NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN unreported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN assumed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
UPDATE turns SET
    cache_written = coalesce(json_extract(record, '$.usage.cache_written'), 0),
    estimated = untouched <> input,
    assumed = untouched <> input,
    unpriced = json_extract(record, '$.usage.cost') IS NULL AND cost = 0 AND input > 0;
