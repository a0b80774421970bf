"""What a tenant may use in a day: checked before a request goes out, told before it is used up.

allowance: after tenants, before exchange. A day is that of UTC. What was used stands in the record
of turns, so that all workers and restarts see the same; requests that are under way may go beyond
it, by as much as they take.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.store.records import TurnUsage

_FRESH_SECONDS = 30.0
"""How long a sum is believed that only this process adds to: other workers write turns too."""
_MOST_TENANTS = 1_000
_DAY = 86_400
_WARNED_AT = 0.8


class AllowanceError(HoldfastError):
    """Who asks has used what may be used in a day."""


class _Used(NamedTuple):
    """What was used today: as the record said when it was asked, and what came since."""

    tokens: int
    dollars: float
    looked_up: float
    """A time of day, so that yesterday's sum is never taken for today's."""


class Allowances:
    """The day's use of each tenant."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._tokens, self._dollars = settings.daily_tokens, settings.daily_dollars
        self._clock = clock
        self._used: OrderedDict[str, _Used] = OrderedDict()

    async def check(self, engine: Holdfast) -> str:
        """Raise if a tenant has used its day's share; else a warning once most of it is gone.

        Raises:
            AllowanceError: not before tomorrow.
            StoreError: what was used cannot be looked up.
        """
        if not (self._tokens or self._dollars):
            return ""
        used = await self._look_up(engine)
        tokens = f"{used.tokens:,} of {self._tokens:,} tokens"
        dollars = f"${used.dollars:.2f} of ${self._dollars:.2f}"
        shares: tuple[tuple[str, str, float, float], ...] = (
            ("daily_tokens", tokens, used.tokens, self._tokens),
            ("daily_dollars", dollars, used.dollars, self._dollars),
        )
        warning = ""
        for setting, told, spent, most in shares:
            if most and spent >= most:
                raise AllowanceError(
                    f"this key has used its share of the day: {told}",
                    where=setting,
                    fix=f"Ask again in {self._seconds_left() // 60 + 1} minutes, at 00:00 UTC.",
                )
            if most and spent >= _WARNED_AT * most:
                warning = f"{told} of this day are used"
        return warning

    async def _look_up(self, engine: Holdfast) -> _Used:
        tenant, now = engine.scope.workspace, self._clock()
        midnight = now - now % _DAY
        used = self._used.get(tenant)
        if used is None or used.looked_up < max(midnight, now - _FRESH_SECONDS):
            totals = await engine.store.usage(engine.scope, by="day", since=midnight)
            tokens = sum(total.input + total.output for total in totals)
            used = _Used(tokens, math.fsum(total.cost for total in totals), now)
            self._used[tenant] = used
            self._used.move_to_end(tenant)
            while len(self._used) > _MOST_TENANTS:
                self._used.popitem(last=False)
        return used

    def add(self, engine: Holdfast, usage: TurnUsage) -> None:
        """A request was answered: what it took counts at once."""
        used = self._used.get(engine.scope.workspace)
        if used is not None:
            tokens = used.tokens + usage.input + usage.output
            dollars = used.dollars + (usage.cost or 0.0)
            self._used[engine.scope.workspace] = used._replace(tokens=tokens, dollars=dollars)

    def _seconds_left(self) -> int:
        return int(_DAY - self._clock() % _DAY)
