"""Which requests the proxy works on now, which wait, and which are told to come again.

admission: after incoming, before service. Everything that is at work takes its turn on one event
loop: 1,000 new sessions at once were each answered after 12 seconds, and a ping took 5. Here a few
requests are at work, some wait in a line where tenants take turns, and others are refused at once
with `Retry-After`, in the provider's form, so that SDKs try again. A request is at work until it
goes out: waiting for a model holds no slot.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

from holdfast.errors import HoldfastError
from holdfast.workers.lanes import FairLane

AT_WORK = 32
"""Requests that are made ready at once. A step of one takes 0.2 ms of the loop, and a ping waits
for three steps of each: some 20 ms."""
MOST_WAITING = 256
"""Requests that wait for a slot: a second or two of work."""
MOST_OF_ONE = 192
"""Those of one tenant, so that its flood leaves room for others."""
LARGE_BYTES = 1_000_000
"""From here on a request has slots of its own: it may take seconds, and small ones do not wait."""
LARGE_AT_WORK = 4
MOST_LARGE = 32
"""Large requests that wait. They wait before their body is read: 32 of 30 MB are a gigabyte."""
LARGE_OF_ONE = 24
_OVERLOADED, _TOO_MANY = 503, 429
_LONGEST_NUMBER = 15
"""Digits of a length: what has more is larger than any body, and slow to read as a number."""
_RETRY_SECONDS = 4
"""Refused clients are spread over so many seconds, so that they do not all come again at once."""


class OverloadedError(HoldfastError):
    """The proxy has more requests than it can work on soon."""

    def __init__(self, status: int, retry_after: int) -> None:
        is_own = status == _TOO_MANY
        what = "this key has too many requests open" if is_own else "the proxy is overloaded"
        super().__init__(what, fix=f"Send the request again in {retry_after} seconds.")
        self.status = status
        self.retry_after = retry_after


class Slot:
    """A request's place among those at work; given back once."""

    def __init__(self, lane: FairLane | None = None, tenant: str = "") -> None:
        self._lane = lane
        self._tenant = tenant

    def release(self) -> None:
        """Let the next request begin: this one goes out, or has ended."""
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.leave(self._tenant)


class Admission:
    """The requests at work and in line."""

    def __init__(self) -> None:
        self._small = _Line(AT_WORK, MOST_WAITING, MOST_OF_ONE)
        self._large = _Line(LARGE_AT_WORK, MOST_LARGE, LARGE_OF_ONE, reserve=2)
        self._seconds = itertools.cycle(range(1, _RETRY_SECONDS + 1))

    @property
    def waiting(self) -> int:
        """How many requests wait for a slot."""
        return self._small.waiting.total() + self._large.waiting.total()

    async def enter(self, tenant: str, headers: Mapping[str, str]) -> Slot:
        """Wait until a request may be worked on.

        Raises:
            OverloadedError: so many wait already that it would be answered too late.
        """
        is_large = _is_large(headers.get("content-length", ""))
        line = self._large if is_large else self._small
        if status := line.refusal(tenant):
            raise OverloadedError(status, next(self._seconds))
        return await line.enter(tenant)


def _is_large(length: str) -> bool:
    if len(length) > _LONGEST_NUMBER:
        return True
    return length.isascii() and length.isdigit() and int(length) >= LARGE_BYTES


class _Line:
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
            await self._lane.enter(tenant)
        finally:
            self.waiting[tenant] -= 1
            if not self.waiting[tenant]:
                del self.waiting[tenant]
        return Slot(self._lane, tenant)
