"""Admission of requests: those that run now, those that wait, and those that are refused.

All running requests share one event loop: 1,000 new sessions at once each took 12 seconds, and a
ping 5. So a few requests run, some wait in a queue in which tenants take turns, and others are
refused at once with `Retry-After`, in the provider's format, so that SDKs retry. A request runs
until it is sent: waiting for a model holds no slot.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping

from holdfast.errors import HoldfastError
from holdfast.surfaces.proxy.logs import Fields, log
from holdfast.workers.lanes import FairLane, Slot

AT_WORK = 32
"""Requests that are prepared at the same time. One step takes 0.2 ms of the loop, and a ping waits
for three steps of each: some 20 ms."""
MOST_WAITING = 256
"""Requests that wait for a slot: a second or two of work."""
MOST_OF_ONE = 192
"""Those of one tenant, so that its flood leaves room for others."""
LARGE_BYTES = 1_000_000
"""Larger requests have separate slots: they may take seconds, and small ones do not wait."""
LARGE_AT_WORK = 4
MOST_LARGE = 32
"""Large requests that wait. They wait before their body is read: 32 of 30 MB are a gigabyte."""
LARGE_OF_ONE = 24
_OVERLOADED, _TOO_MANY = 503, 429
_LONGEST_NUMBER = 15
"""Digits of a length: a longer number exceeds any body, and is slow to parse."""
LONGEST_RETRY = 60
"""Seconds; the SDKs of OpenAI and Anthropic ignore a longer `Retry-After`."""
_LEAST_RATE = 10.0
"""Requests per second at which refused clients may retry, before the actual rate is known."""
_LOGGED_SECONDS = 10.0


class OverloadedError(HoldfastError):
    """The proxy has more requests than it can work on soon."""

    def __init__(self, status: int, retry_after: int) -> None:
        is_own = status == _TOO_MANY
        what = "this key has too many requests open" if is_own else "the proxy is overloaded"
        super().__init__(what, fix=f"Send the request again in {retry_after} seconds.")
        self.status = status
        self.retry_after = retry_after


class Admission:
    """The requests at work and in line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rate = _Rate(clock)
        self._small = _WaitingLine(AT_WORK, MOST_WAITING, MOST_OF_ONE)
        self._large = _WaitingLine(LARGE_AT_WORK, MOST_LARGE, LARGE_OF_ONE, reserve=2)
        self._next_try = 0.0
        """When the client that was refused last is to come again."""
        self._logged = -_LOGGED_SECONDS

    @property
    def waiting(self) -> int:
        """How many requests wait for a slot."""
        return self._small.waiting.total() + self._large.waiting.total()

    def check(self, tenant: str, headers: Mapping[str, str]) -> None:
        """Raise OverloadedError if too many requests wait already.

        Runs before anything of the request is read, because refusing must be cheap.
        """
        if status := self._line_of(headers).refusal(tenant):
            seconds = self._retry_after()
            if self._clock() - self._logged >= _LOGGED_SECONDS:
                self._logged = self._clock()
                log.warning(Fields(event="overloaded", waiting=self.waiting, retry_after=seconds))
            raise OverloadedError(status, seconds)

    async def enter(self, tenant: str, headers: Mapping[str, str]) -> Slot:
        """Wait until a request may be worked on; raise OverloadedError as `check` does."""
        self.check(tenant, headers)
        slot = await self._line_of(headers).enter(tenant)
        self._rate.add()
        return slot

    def _line_of(self, headers: Mapping[str, str]) -> _WaitingLine:
        return self._large if _is_large(headers.get("content-length", "")) else self._small

    def _retry_after(self) -> int:
        """Return the seconds after which a refused client finds a slot.

        Each client gets a different time, at the rate at which requests start: when all got the
        same second, 1,000 clients returned together, and refusing them took all the time there was.
        """
        now = self._clock()
        self._next_try = max(self._next_try, now + 1.0) + 1.0 / self._rate.per_second
        self._next_try = min(self._next_try, now + LONGEST_RETRY)
        return math.ceil(self._next_try - now)


class _Rate:
    """How many requests began in the last full second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = 0
        self._count = 0
        self._before = 0

    def add(self) -> None:
        self._roll()
        self._count += 1

    @property
    def per_second(self) -> float:
        self._roll()
        return max(_LEAST_RATE, self._before, self._count)

    def _roll(self) -> None:
        second = int(self._clock())
        if second != self._second:
            self._before = self._count if second == self._second + 1 else 0
            self._second, self._count = second, 0


def _is_large(length: str) -> bool:
    if len(length) > _LONGEST_NUMBER:
        return True
    return length.isascii() and length.isdigit() and int(length) >= LARGE_BYTES


class _WaitingLine:
    """Slots for one kind of request, and a bounded line before them."""

    def __init__(self, slots: int, most: int, most_of_one: int, *, reserve: int = 0) -> None:
        self._lane = FairLane(slots, reserve=reserve)
        self._most = most
        self._most_of_one = most_of_one
        self.waiting: Counter[str] = Counter()

    def refusal(self, tenant: str) -> int:
        """Return the status with which a request is refused; 0 if it may wait."""
        if self.waiting.total() >= self._most:
            return _OVERLOADED
        return _TOO_MANY if self.waiting[tenant] >= self._most_of_one else 0

    async def enter(self, tenant: str) -> Slot:
        self.waiting[tenant] += 1
        try:
            return await self._lane.enter(tenant)
        finally:
            self.waiting[tenant] -= 1
            if not self.waiting[tenant]:
                del self.waiting[tenant]
