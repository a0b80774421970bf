-- How often records were removed for good: processes that hold copies in memory look at it.
CREATE TABLE removals (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL
);
INSERT INTO removals (id, number) VALUES (1, 0);
