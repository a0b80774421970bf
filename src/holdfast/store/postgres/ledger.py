"""ledger: daily use on PostgreSQL.

after database, before store. Every transaction holds a lock on the tenant: read committed alone
would see a settled call's reservation gone and its use not yet there.
"""

from __future__ import annotations

from typing import LiteralString

from holdfast.store.postgres.database import Connection, Database
from holdfast.store.scope import Scope
from holdfast.store.usage_ledger import (
    KEPT_DAYS,
    Amount,
    DayUse,
    Reservation,
    UsageLedger,
    admits,
    repeated_token,
)

_LOCK: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"

_EXPIRED: LiteralString = """
DELETE FROM holdfast.reservations WHERE workspace = $1 AND username = $2 AND expires_at <= $3
RETURNING day, least_tokens, least_dollars
"""

_USED: LiteralString = """
SELECT tokens, dollars FROM holdfast.daily_usage
WHERE workspace = $1 AND username = $2 AND day = $3
"""

_RESERVED: LiteralString = """
SELECT count(*) AS calls, coalesce(sum(tokens), 0)::bigint AS tokens,
    coalesce(sum(dollars), 0)::float8 AS dollars
FROM holdfast.reservations WHERE workspace = $1 AND username = $2 AND day = $3
"""

_RESERVE: LiteralString = """
INSERT INTO holdfast.reservations (
    workspace, username, token, day, tokens, dollars, least_tokens, least_dollars, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING RETURNING token
"""

_RENEW: LiteralString = """
UPDATE holdfast.reservations SET expires_at = $4
WHERE workspace = $1 AND username = $2 AND token = $3
"""

_SETTLE: LiteralString = """
DELETE FROM holdfast.reservations WHERE workspace = $1 AND username = $2 AND token = $3
RETURNING token
"""

_ADD: LiteralString = """
INSERT INTO holdfast.daily_usage AS d (workspace, username, day, tokens, dollars)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (workspace, username, day)
DO UPDATE SET tokens = d.tokens + excluded.tokens, dollars = d.dollars + excluded.dollars
"""

_FORGET: LiteralString = """
DELETE FROM holdfast.daily_usage WHERE workspace = $1 AND username = $2 AND day < $3
"""


class PostgresLedger(UsageLedger):
    """Keeps daily use in the database of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def day_use(self, scope: Scope, day: int) -> DayUse:
        """Return the use of one day."""
        owner = (scope.workspace, scope.user)

        async def work(connection: Connection) -> DayUse:
            return await _day_use(connection, owner, day)

        return await self._database.transact(work)

    async def reserve(
        self, scope: Scope, wanted: Reservation, limits: Amount, now: float
    ) -> tuple[bool, DayUse]:
        """Reserve if the call may be sent."""
        owner = (scope.workspace, scope.user)

        async def work(connection: Connection) -> tuple[bool, DayUse]:
            await _lock(connection, owner)
            for row in await connection.fetch(_EXPIRED, *owner, now):
                least = (row["least_tokens"], row["least_dollars"])
                await connection.execute(_ADD, *owner, row["day"], *least)
            await connection.execute(_FORGET, *owner, wanted.day - KEPT_DAYS)
            use = await _day_use(connection, owner, wanted.day)
            admitted = admits(use, wanted.most, limits)
            if admitted:
                amounts = (*wanted.most, *wanted.least)
                named = (*owner, wanted.token, wanted.day)
                if not await connection.fetch(_RESERVE, *named, *amounts, wanted.expires_at):
                    raise repeated_token()
            return admitted, use

        return await self._database.transact(work)

    async def renew(self, scope: Scope, token: str, expires_at: float) -> None:
        """Let a reservation live longer."""
        await self._database.fetch(_RENEW, scope.workspace, scope.user, token, expires_at)

    async def settle(self, scope: Scope, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by what the call used."""
        owner = (scope.workspace, scope.user)

        async def work(connection: Connection) -> None:
            await _lock(connection, owner)
            is_open = bool(await connection.fetch(_SETTLE, *owner, reservation.token))
            added = used if is_open else used.beyond(reservation.least)
            await connection.execute(_ADD, *owner, reservation.day, *added)

        await self._database.transact(work)


async def _lock(connection: Connection, owner: tuple[str, str]) -> None:
    await connection.execute(_LOCK, "\n".join(("daily use", *owner)))


async def _day_use(connection: Connection, owner: tuple[str, str], day: int) -> DayUse:
    used = await connection.fetchrow(_USED, *owner, day)
    reserved = await connection.fetchrow(_RESERVED, *owner, day)
    return DayUse(
        used=Amount(used["tokens"], used["dollars"]) if used else Amount(),
        reserved=Amount(reserved["tokens"], reserved["dollars"]),
        open_calls=reserved["calls"],
    )
