-- How often records were removed for good: processes that hold copies in memory look at it.
CREATE TABLE holdfast.removals (
    id integer PRIMARY KEY CHECK (id = 1),
    number bigint NOT NULL
) WITH (fillfactor = 10);

-- ANALYZE copies samples of a column to pg_statistic, where they outlive the rows: none of columns
-- that hold what people wrote. A type set anew, though it is the same, removes the samples there are.
ALTER TABLE holdfast.contents ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE holdfast.refs
    ALTER COLUMN summary TYPE text, ALTER COLUMN summary SET STATISTICS 0,
    ALTER COLUMN compressed TYPE text, ALTER COLUMN compressed SET STATISTICS 0,
    ALTER COLUMN meta TYPE text, ALTER COLUMN meta SET STATISTICS 0;
ALTER TABLE holdfast.sessions
    ALTER COLUMN title TYPE text, ALTER COLUMN title SET STATISTICS 0,
    ALTER COLUMN model TYPE text, ALTER COLUMN model SET STATISTICS 0;
ALTER TABLE holdfast.turns
    ALTER COLUMN record TYPE text, ALTER COLUMN record SET STATISTICS 0,
    ALTER COLUMN model TYPE text, ALTER COLUMN model SET STATISTICS 0;
ALTER TABLE holdfast.summaries ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE holdfast.remembered
    ALTER COLUMN indexed TYPE bytea, ALTER COLUMN indexed SET STATISTICS 0,
    ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0,
    ALTER COLUMN words TYPE tsvector, ALTER COLUMN words SET STATISTICS 0;
ALTER TABLE holdfast.facts
    ALTER COLUMN text TYPE text, ALTER COLUMN text SET STATISTICS 0,
    ALTER COLUMN subject TYPE text COLLATE "C", ALTER COLUMN subject SET STATISTICS 0,
    ALTER COLUMN said_by TYPE text COLLATE "C", ALTER COLUMN said_by SET STATISTICS 0,
    ALTER COLUMN tags TYPE jsonb, ALTER COLUMN tags SET STATISTICS 0;
ALTER TABLE holdfast.fact_sources
    ALTER COLUMN place TYPE text COLLATE "C", ALTER COLUMN place SET STATISTICS 0;
ALTER TABLE holdfast.answers ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE holdfast.journal ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE holdfast.tools ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE holdfast.calibrations ALTER COLUMN data TYPE bytea, ALTER COLUMN data SET STATISTICS 0;
ALTER TABLE holdfast.links
    ALTER COLUMN name TYPE text COLLATE "C", ALTER COLUMN name SET STATISTICS 0;
