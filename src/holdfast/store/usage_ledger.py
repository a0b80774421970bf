"""The daily use of each tenant, and the reservations of its open requests.

A reservation is made before a request is sent and settled with the reported usage. Reserving is
atomic: of thirty requests at the same time, from any number of processes, only those that fit
together are sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import msgspec

from holdfast.errors import StoreConflictError
from holdfast.store.scope import Scope

DAY_SECONDS = 86_400
KEPT_DAYS = 2
"""A request that began before midnight is settled in the day in which it began."""


class Amount(NamedTuple):
    """Tokens, input and output together, and US dollars."""

    tokens: int = 0
    dollars: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.tokens + other.tokens, self.dollars + other.dollars)

    def beyond(self, other: Amount) -> Amount:
        """Return how much this exceeds another amount; never less than nothing."""
        return Amount(max(0, self.tokens - other.tokens), max(0.0, self.dollars - other.dollars))


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum use of one upstream call."""

    token: str
    """Random; names the reservation."""
    day: int
    """Days since 1970, in UTC."""
    most: Amount
    """Counted while the call is under way."""
    least: Amount
    """Counted if the call is never settled because its process died."""
    expires_at: float
    """Seconds since 1970; a process that lives renews its reservations before that."""


class DayUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one tenant in one day."""

    used: Amount = Amount()
    """Of settled calls."""
    reserved: Amount = Amount()
    """The most that calls under way may use."""
    open_calls: int = 0


def is_used_up(use: DayUse, limits: Amount) -> bool:
    """Return whether settled calls have reached a limit; 0 is no limit."""
    return bool(
        (limits.tokens and use.used.tokens >= limits.tokens)
        or (limits.dollars and use.used.dollars >= limits.dollars)
    )


def repeated_token() -> StoreConflictError:
    """Return the error for a token that names an open reservation already."""
    return StoreConflictError(
        "a reservation with this token is open", where="token", fix="Use a new random token."
    )


def admits(use: DayUse, most: Amount, limits: Amount) -> bool:
    """Return whether a call that may use `most` can be sent.

    A call that is alone is sent while anything is left: how long an answer gets is seldom known
    before, and a model's maximum would exceed many a limit by itself. Beside other calls it has to
    fit. So a day's use exceeds the limit by less than one call.
    """
    if is_used_up(use, limits):
        return False
    if not use.open_calls:
        return True
    total = use.used.plus(use.reserved).plus(most)
    fits_tokens = not limits.tokens or total.tokens <= limits.tokens
    return fits_tokens and (not limits.dollars or total.dollars <= limits.dollars)


class UsageLedger(ABC):
    """The calls on the ledger; each store has one that makes them true."""

    @abstractmethod
    async def day_use(self, scope: Scope, day: int) -> DayUse:
        """Return the use of one day."""

    @abstractmethod
    async def reserve(
        self, scope: Scope, wanted: Reservation, limits: Amount, now: float
    ) -> tuple[bool, DayUse]:
        """Reserve if `admits` allows it; whether it did, and the day's use without this call.

        Expired reservations of the scope are settled with their least first.

        Raises:
            StoreConflictError: a reservation with this token is open: two calls would count once.
        """

    @abstractmethod
    async def renew(self, scope: Scope, token: str, expires_at: float) -> None:
        """Let a reservation live longer; one that is settled or expired stays so."""

    @abstractmethod
    async def settle(self, scope: Scope, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by the actual use.

        A missing reservation was settled with its minimum: the difference is added.
        """
