"""The daily limit of a tenant: reserved before a request is sent, settled after the response.

A day is a UTC day. Use and reservations are in the store, so that all processes and restarts share
them. A day's use exceeds the limit by less than one call: see `admits` in store/usage_ledger.py.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.store.protocol import Store
from holdfast.store.usage_ledger import (
    DAY_SECONDS,
    Amount,
    DayUse,
    Reservation,
    is_used_up,
)

LEASE_SECONDS = 120.0
"""How long a reservation outlives its process: for so long a tenant with a small limit may be kept
out after a kill."""
RENEW_SECONDS = 30.0
_WARNED_AT = 0.8
_BUSY_SECONDS = 1
"""When to ask again while others' requests hold the rest: most answers take seconds."""


class AllowanceError(HoldfastError):
    """The tenant has reached its daily limit, or open requests may use the rest."""

    def __init__(self, what: str, *, where: str, fix: str, retry_seconds: int) -> None:
        super().__init__(what, where=where, fix=fix)
        self.retry_seconds = retry_seconds


class Hold(NamedTuple):
    """A reservation, and whose it is."""

    scope: Scope
    reservation: Reservation


class Allowances:
    """The day's use of each tenant."""

    def __init__(
        self, settings: Settings, store: Store, clock: Callable[[], float] = time.time
    ) -> None:
        self.limits = Amount(settings.daily_limit.tokens, settings.daily_limit.dollars)
        self.is_limited = bool(self.limits.tokens or self.limits.dollars)
        self._ledger = store.ledger
        self._clock = clock

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._clock()

    async def check(self, scopes: Sequence[Scope]) -> str:
        """Raise if a tenant has reached its daily limit; return a warning if most of it is used.

        Raises:
            AllowanceError: the limit is reached until tomorrow.
            StoreError: the use cannot be read.
        """
        warnings: list[str] = []
        if self.is_limited:
            now = self._clock()
            for scope in scopes:
                use = await self._ledger.day_use(scope, _day(now))
                self._check_left(use)
                warnings += self._warnings(use)
        return "; ".join(warnings)

    async def reserve(self, scopes: Sequence[Scope], most: Amount, least: Amount) -> list[Hold]:
        """Reserve the maximum use of a call for every tenant that it counts for.

        Raises:
            AllowanceError: a daily limit is reached, or would be by the open calls.
            StoreError: the store is not available.
        """
        holds: list[Hold] = []
        now = self._clock()
        for scope in scopes:
            reservation = Reservation(
                token=secrets.token_hex(12),
                day=_day(now),
                most=most,
                least=least,
                expires_at=now + LEASE_SECONDS,
            )
            ledger = self._ledger
            admitted, use = await ledger.reserve(scope, reservation, self.limits, now)
            if not admitted:
                await self.settle(holds, Amount())
                self._check_left(use)
                raise AllowanceError(
                    "requests under way may use the rest of this day's share",
                    where="daily_limit.tokens" if self.limits.tokens else "daily_limit.dollars",
                    fix="Ask again when they are answered, or for a shorter answer (max_tokens).",
                    retry_seconds=_BUSY_SECONDS,
                )
            holds.append(Hold(scope, reservation))
        return holds

    async def renew(self, holds: Sequence[Hold]) -> None:
        """Keep the reservations of a call that is still under way."""
        for scope, reservation in holds:
            await self._ledger.renew(scope, reservation.token, self._clock() + LEASE_SECONDS)

    async def settle(self, holds: Sequence[Hold], used: Amount) -> list[Hold]:
        """Replace reservations by the actual use; the result settles later use."""
        settled = []
        for scope, reservation in holds:
            await self._ledger.settle(scope, reservation, used)
            settled.append(Hold(scope, msgspec.structs.replace(reservation, least=used)))
        return settled

    def _shares(self, use: DayUse) -> tuple[tuple[str, str, float, float], ...]:
        """Return setting, text, use and limit of each limit."""
        used, limits = use.used, self.limits
        tokens = f"{used.tokens:,} of {limits.tokens:,} tokens"
        dollars = f"${used.dollars:.2f} of ${limits.dollars:.2f}"
        return (
            ("daily_limit.tokens", tokens, used.tokens, limits.tokens),
            ("daily_limit.dollars", dollars, used.dollars, limits.dollars),
        )

    def _check_left(self, use: DayUse) -> None:
        if not is_used_up(use, self.limits):
            return
        setting, text = next(
            (setting, text) for setting, text, used, most in self._shares(use) if 0 < most <= used
        )
        seconds_left = math.ceil(DAY_SECONDS - self._clock() % DAY_SECONDS)
        raise AllowanceError(
            f"this key has used its share of the day: {text}",
            where=setting,
            fix=f"Ask again in {seconds_left // 60 + 1} minutes, at 00:00 UTC.",
            retry_seconds=seconds_left,
        )

    def _warnings(self, use: DayUse) -> list[str]:
        return [
            f"{text} of this day are used"
            for _, text, used, most in self._shares(use)
            if most and used >= _WARNED_AT * most
        ]


def _day(now: float) -> int:
    return int(now // DAY_SECONDS)
