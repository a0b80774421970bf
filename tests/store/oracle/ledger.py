"""The model of the ledger of daily use."""

from __future__ import annotations

from functools import reduce

import msgspec

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

_Owner = tuple[str, str]
"""Workspace and user."""


class ModelLedger(UsageLedger):
    """Keeps daily use in dictionaries."""

    def __init__(self) -> None:
        self._used: dict[tuple[_Owner, int], Amount] = {}
        self._open: dict[_Owner, dict[str, Reservation]] = {}

    async def day_use(self, scope: Scope, day: int) -> DayUse:
        """Return the use of one day."""
        owner = _owner(scope)
        today = [one.most for one in self._open.get(owner, {}).values() if one.day == day]
        reserved = reduce(Amount.plus, today, Amount())
        used = self._used.get((owner, day), Amount())
        return DayUse(used=used, reserved=reserved, open_calls=len(today))

    async def reserve(
        self, scope: Scope, wanted: Reservation, limits: Amount, now: float
    ) -> tuple[bool, DayUse]:
        """Reserve if the call may be sent."""
        owner = _owner(scope)
        mine = self._open.setdefault(owner, {})
        for one in [one for one in mine.values() if one.expires_at <= now]:
            await self.settle(scope, one, one.least)
        for key in [key for key in self._used if key[1] < wanted.day - KEPT_DAYS]:
            del self._used[key]
        use = await self.day_use(scope, wanted.day)
        admitted = admits(use, wanted.most, limits)
        if admitted:
            if wanted.token in mine:
                raise repeated_token()
            mine[wanted.token] = wanted
        return admitted, use

    async def renew(self, scope: Scope, token: str, expires_at: float) -> None:
        """Let a reservation live longer."""
        mine = self._open.get(_owner(scope), {})
        if token in mine:
            mine[token] = msgspec.structs.replace(mine[token], expires_at=expires_at)

    async def settle(self, scope: Scope, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by the actual use."""
        owner = _owner(scope)
        mine = self._open.get(owner, {})
        is_open = mine.pop(reservation.token, None) is not None
        added = used if is_open else used.beyond(reservation.least)
        key = (owner, reservation.day)
        self._used[key] = self._used.get(key, Amount()).plus(added)

    def erase(self, scope: Scope) -> None:
        """Forget all use of a tenant."""
        owner = _owner(scope)
        self._open.pop(owner, None)
        for key in [key for key in self._used if key[0] == owner]:
            del self._used[key]


def _owner(scope: Scope) -> _Owner:
    return scope.workspace, scope.user
