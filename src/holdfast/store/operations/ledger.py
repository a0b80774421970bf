"""ledger: the daily use of tenants, and the reservations of calls under way."""

from __future__ import annotations

from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Runner, load
from holdfast.store.usage_ledger import (
    KEPT_DAYS,
    Amount,
    DayUse,
    Reservation,
    UsageLedger,
    admits,
    repeated_token,
)

_sql = load("ledger")


class SqlLedger(UsageLedger):
    """Daily use in a database."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def day_use(self, scope: Scope, day: int) -> DayUse:
        """Return the use of one day."""
        return await self._runner.fetch(_day_use, scope, day)

    async def reserve(
        self, scope: Scope, wanted: Reservation, limits: Amount, now: float
    ) -> tuple[bool, DayUse]:
        """Reserve if the call may be sent."""
        return await self._runner.write(_reserve, scope, wanted, limits, now)

    async def renew(self, scope: Scope, token: str, expires_at: float) -> None:
        """Extend a reservation."""

        def work() -> Operation[None]:
            yield _sql.renew(scope, token=token, expires_at=expires_at)

        await self._runner.write_one(work)

    async def settle(self, scope: Scope, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by the call's use."""
        await self._runner.write(_settle, scope, reservation, used)


def _day_use(scope: Scope, day: int) -> Operation[DayUse]:
    ((tokens, dollars, reserved_tokens, reserved_dollars, calls),) = yield _sql.day_use(
        scope, day=day
    )
    return DayUse(
        used=Amount(tokens or 0, dollars or 0.0),
        # PostgreSQL's sum of integers is a decimal.
        reserved=Amount(int(reserved_tokens), float(reserved_dollars)),
        open_calls=calls,
    )


def _reserve(
    scope: Scope, wanted: Reservation, limits: Amount, now: float
) -> Operation[tuple[bool, DayUse]]:
    yield _sql.lock(scope)
    # Reservations of processes that died count with their least.
    for day, tokens, dollars in (yield _sql.remove_expired(scope, now=now)):
        yield from _add_use(scope, day, Amount(tokens, dollars))
    yield _sql.remove_days(scope, before=wanted.day - KEPT_DAYS)
    use = yield from _day_use(scope, wanted.day)
    admitted = admits(use, wanted.most, limits)
    if admitted:
        reserved = yield _sql.reserve(
            scope,
            token=wanted.token,
            day=wanted.day,
            tokens=wanted.most.tokens,
            dollars=wanted.most.dollars,
            least_tokens=wanted.least.tokens,
            least_dollars=wanted.least.dollars,
            expires_at=wanted.expires_at,
        )
        if not reserved:
            raise repeated_token()
    return admitted, use


def _settle(scope: Scope, reservation: Reservation, used: Amount) -> Operation[None]:
    yield _sql.lock(scope)
    is_open = bool((yield _sql.settle(scope, token=reservation.token)))
    added = used if is_open else used.beyond(reservation.least)
    yield from _add_use(scope, reservation.day, added)


def _add_use(scope: Scope, day: int, amount: Amount) -> Operation[None]:
    yield _sql.add_use(scope, day=day, tokens=amount.tokens, dollars=amount.dollars)
