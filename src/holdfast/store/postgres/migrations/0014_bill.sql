-- Figures of the bill: cache writes by their price, list prices of the offline model's answers, and
-- which turns hold estimates. Turns of earlier versions had their savings estimated.
ALTER TABLE holdfast.turns
    ADD COLUMN cache_written bigint NOT NULL DEFAULT 0,
    ADD COLUMN cache_written_hour bigint NOT NULL DEFAULT 0,
    ADD COLUMN demo_cost double precision,
    ADD COLUMN demo_saved_cost double precision,
    ADD COLUMN unreported boolean NOT NULL DEFAULT false,
    ADD COLUMN estimated boolean NOT NULL DEFAULT false,
    ADD COLUMN assumed boolean NOT NULL DEFAULT false,
    ADD COLUMN unpriced boolean NOT NULL DEFAULT false;
UPDATE holdfast.turns SET
    cache_written = coalesce((record::json -> 'usage' ->> 'cache_written')::bigint, 0),
    estimated = untouched <> input,
    assumed = untouched <> input,
    unpriced = cost IS NULL AND input > 0;
