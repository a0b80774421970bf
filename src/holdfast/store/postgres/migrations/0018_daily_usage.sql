-- What tenants used in a day of UTC, and what their open requests may still use: for daily limits.
CREATE TABLE holdfast.daily_usage (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    day bigint NOT NULL,               -- since 1970
    tokens bigint NOT NULL,
    dollars double precision NOT NULL,
    PRIMARY KEY (workspace, username, day)
);
CREATE TABLE holdfast.reservations (
    workspace text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    day bigint NOT NULL,
    tokens bigint NOT NULL,
    dollars double precision NOT NULL,
    least_tokens bigint NOT NULL,      -- counted if the process dies before it settles
    least_dollars double precision NOT NULL,
    expires_at double precision NOT NULL,
    PRIMARY KEY (workspace, username, token)
);
