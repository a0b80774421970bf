"""Lanes: how many tasks run at once, and whose task is next. Tenants take turns.

lanes: before pool. With one queue for all, a tenant that sent three requests of 29 MB made another
tenant's 2 MB wait for all three. Here each tenant has a queue of its own, and a slot that becomes
free goes to the tenant that has waited longest since its last turn.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from contextvars import ContextVar

from holdfast.faults import logged_faults

_LOOK_SECONDS = 1.0
"""How often a task that waits looks for a slot itself: a notice may be lost by an internal error,
and without it every later request would hang."""

_TENANT: ContextVar[str] = ContextVar("holdfast.workers.tenant", default="")


def work_for(tenant: str) -> None:
    """Name the tenant whose work the current task does from now on."""
    _TENANT.set(tenant)


def current_tenant() -> str:
    """Return the tenant whose work the current task does; empty if there is only one."""
    return _TENANT.get()


class FairLane:
    """A number of slots for tasks. A task waits in its tenant's queue; tenants take turns.

    `reserve` more slots are for tenants without a task in the lane: a task cannot be interrupted,
    so without them a newcomer would wait until another tenant's longest task ends.
    """

    def __init__(self, slots: int, *, reserve: int = 0) -> None:
        self.slots = slots
        self.reserve = reserve
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[Future[None]]] = OrderedDict()
        """Queues by tenant, the one whose turn is next first."""

    @property
    def running(self) -> int:
        """How many tasks hold a slot."""
        with self._lock:
            return self._running.total()

    @property
    def waiting(self) -> int:
        """How many tasks wait for a slot."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    async def enter(self, tenant: str) -> None:
        """Wait for a slot without holding a thread."""
        turn = self._request(tenant)
        if turn.done():
            return
        try:
            waiting = asyncio.wrap_future(turn)
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
                self._look(turn)
        except BaseException:
            self._give_up(tenant, turn)
            raise

    def enter_in_thread(self, tenant: str, seconds: float | None = None) -> bool:
        """Wait for a slot in a thread; return False if there was none in time."""
        turn = self._request(tenant)
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        try:
            while not turn.done():
                left = until - time.monotonic()
                if left <= 0:
                    self._give_up(tenant, turn)
                    return False
                with suppress(FutureTimeoutError):
                    turn.result(min(left, _LOOK_SECONDS))
                self._look(turn)
        except BaseException:
            self._give_up(tenant, turn)
            raise
        return True

    def leave(self, tenant: str) -> None:
        """Give a slot back, and let the next tenant have it."""
        with self._lock:
            self._running[tenant] -= 1
            if not self._running[tenant]:
                del self._running[tenant]
            with logged_faults("holdfast.workers").caught("lanes"):  # the next look admits them
                self._admit()

    def _request(self, tenant: str) -> Future[None]:
        turn: Future[None] = Future()
        with self._lock:
            self._waiting.setdefault(tenant, deque()).append(turn)
            try:
                self._admit()
            except BaseException:
                turn.cancel()  # or it would be given a slot that nobody gives back
                raise
        return turn

    def _look(self, turn: Future[None]) -> None:
        """Admit whoever can be, where a notice was lost."""
        if not turn.done():
            with self._lock:
                self._admit()

    def _give_up(self, tenant: str, turn: Future[None]) -> None:
        """Leave the queue; a slot that was given in this very moment goes to the next."""
        if not turn.cancel() and not turn.cancelled():
            self.leave(tenant)

    def _admit(self) -> None:
        """Give free slots to the tenants whose turn it is."""
        for tenant in list(self._waiting):
            if not self._has_slot_for(tenant):
                continue
            queue = self._waiting.pop(tenant)
            while queue:
                turn = queue.popleft()
                if turn.set_running_or_notify_cancel():
                    self._running[tenant] += 1
                    turn.set_result(None)
                    break
            if queue:
                self._waiting[tenant] = queue  # behind the others

    def _has_slot_for(self, tenant: str) -> bool:
        running = self._running.total()
        if running < self.slots:
            return True
        return running < self.slots + self.reserve and not self._running[tenant]
