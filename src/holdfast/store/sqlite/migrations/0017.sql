-- What tenants used in a day of UTC, and what their open requests may still use: for daily limits.
CREATE TABLE daily_usage (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    day INTEGER NOT NULL,              -- since 1970
    tokens INTEGER NOT NULL,
    dollars REAL NOT NULL,
    PRIMARY KEY (workspace, owner, day)
);
CREATE INDEX daily_usage_by_day ON daily_usage (day);
CREATE TABLE reservations (
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    token TEXT NOT NULL,
    day INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    dollars REAL NOT NULL,
    least_tokens INTEGER NOT NULL,     -- counted if the process dies before it settles
    least_dollars REAL NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (workspace, owner, token)
);
