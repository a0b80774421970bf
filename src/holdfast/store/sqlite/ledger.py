"""ledger: daily use on SQLite.

ledger: after writer, before store. The writer begins each job with BEGIN IMMEDIATE: what was read
for a reservation is still true when it is written, whatever other processes do.
"""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.store.scope import Scope
from holdfast.store.sqlite.writer import Readers, Writer
from holdfast.store.usage_ledger import (
    KEPT_DAYS,
    Amount,
    DayUse,
    Reservation,
    UsageLedger,
    admits,
    repeated_token,
)


class SqliteLedger(UsageLedger):
    """Keeps daily use in the file of the store."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def day_use(self, scope: Scope, day: int) -> DayUse:
        """Return the use of one day."""
        owner = (scope.workspace, scope.user)
        return await self._readers.read(lambda db: _day_use(db, owner, day))

    async def reserve(
        self, scope: Scope, wanted: Reservation, limits: Amount, now: float
    ) -> tuple[bool, DayUse]:
        """Reserve if the call may be sent."""
        owner = (scope.workspace, scope.user)

        def job(db: apsw.Connection) -> tuple[bool, DayUse]:
            _settle_expired(db, owner, now)
            use = _day_use(db, owner, wanted.day)
            admitted = admits(use, wanted.most, limits)
            if admitted:
                is_new = db.execute(
                    "INSERT INTO reservations (workspace, owner, token, day, tokens, dollars,"
                    " least_tokens, least_dollars, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT DO NOTHING RETURNING token",
                    (*owner, wanted.token, wanted.day, *wanted.most, *wanted.least,
                     wanted.expires_at),
                ).fetchall()  # fmt: skip
                if not is_new:
                    raise repeated_token()
            return admitted, use

        return await self._writer.submit(job)

    async def renew(self, scope: Scope, token: str, expires_at: float) -> None:
        """Let a reservation live longer."""

        def job(db: apsw.Connection) -> None:
            db.execute(
                "UPDATE reservations SET expires_at = ?"
                " WHERE workspace = ? AND owner = ? AND token = ?",
                (expires_at, scope.workspace, scope.user, token),
            )

        await self._writer.submit(job)

    async def settle(self, scope: Scope, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by what the call used."""
        owner = (scope.workspace, scope.user)

        def job(db: apsw.Connection) -> None:
            db.execute(
                "DELETE FROM reservations WHERE workspace = ? AND owner = ? AND token = ?",
                (*owner, reservation.token),
            )
            added = used if db.changes() else used.beyond(reservation.least)
            _add(db, owner, reservation.day, added)

        await self._writer.submit(job)


def _settle_expired(db: apsw.Connection, owner: tuple[str, str], now: float) -> None:
    """Count the reservations of processes that died with their least."""
    rows: list[Any] = db.execute(
        "DELETE FROM reservations WHERE workspace = ? AND owner = ? AND expires_at <= ?"
        " RETURNING day, least_tokens, least_dollars",
        (*owner, now),
    ).fetchall()
    for day, tokens, dollars in rows:
        _add(db, owner, day, Amount(tokens, dollars))


def _day_use(db: apsw.Connection, owner: tuple[str, str], day: int) -> DayUse:
    used: Any = db.execute(
        "SELECT tokens, dollars FROM daily_usage WHERE workspace = ? AND owner = ? AND day = ?",
        (*owner, day),
    ).fetchone()
    reserved: Any = db.execute(
        "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(dollars), 0.0) FROM reservations"
        " WHERE workspace = ? AND owner = ? AND day = ?",
        (*owner, day),
    ).fetchone()
    calls, tokens, dollars = reserved
    return DayUse(
        used=Amount(*used) if used else Amount(),
        reserved=Amount(tokens, dollars),
        open_calls=calls,
    )


def _add(db: apsw.Connection, owner: tuple[str, str], day: int, amount: Amount) -> None:
    db.execute(
        "UPDATE daily_usage SET tokens = tokens + ?, dollars = dollars + ?"
        " WHERE workspace = ? AND owner = ? AND day = ?",
        (*amount, *owner, day),
    )
    if db.changes():
        return
    db.execute("DELETE FROM daily_usage WHERE day < ?", (day - KEPT_DAYS,))
    db.execute(
        "INSERT INTO daily_usage (workspace, owner, day, tokens, dollars) VALUES (?, ?, ?, ?, ?)",
        (*owner, day, *amount),
    )
