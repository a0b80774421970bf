"""Lanes: how many tasks run at once, and whose task is next. Tenants take turns.

lanes: before pool. With one queue for all, a tenant that sent three requests of 29 MB made another
tenant's 2 MB wait for all three. Here each tenant has a separate queue, and a free slot is given to
the tenant that has waited longest since its last turn.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import NamedTuple
from weakref import WeakSet

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


class Slot:
    """A task's place among those that run in a lane.

    It is free once the task releases it, or once the object is deleted: a slot that only a call can
    free would be lost if that call failed.
    """

    __slots__ = ("__weakref__", "_lane", "tenant")

    def __init__(self, lane: FairLane, tenant: str) -> None:
        self._lane = lane
        self.tenant = tenant

    def release(self) -> None:
        """Let the next tenant have the slot; a second time does nothing."""
        self._lane.release(self)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another task run in a block in which this one only waits; in a thread."""
        self.release()
        try:
            yield
        finally:
            self._lane.wait_in_thread(self)


class FairLane:
    """A number of slots for tasks. A task waits in its tenant's queue; tenants take turns.

    `reserve` more slots are for tenants without a task in the lane: a task cannot be interrupted,
    so without them a newcomer would wait until another tenant's longest task ends.
    """

    def __init__(self, slots: int, *, reserve: int = 0) -> None:
        self.slots = slots
        self.reserve = reserve
        self._lock = threading.Lock()
        self._taken: WeakSet[Slot] = WeakSet()
        self._waiting: OrderedDict[str, deque[_Turn]] = OrderedDict()
        """Queues by tenant, the one whose turn is next first."""

    @property
    def running(self) -> int:
        """How many tasks hold a slot."""
        with self._lock:
            return len(self._taken)

    @property
    def waiting(self) -> int:
        """How many tasks wait for a slot."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    async def enter(self, tenant: str) -> Slot:
        """Wait for a slot without holding a thread."""
        turn = self._request(Slot(self, tenant))
        if turn.given.done():
            return turn.slot
        try:
            waiting = asyncio.wrap_future(turn.given)
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
                self._look(turn)
        except BaseException:
            self._give_up(turn)
            raise
        return turn.slot

    def enter_in_thread(self, tenant: str, seconds: float | None = None) -> Slot | None:
        """Wait for a slot in a thread; return None if there was none in time."""
        slot = Slot(self, tenant)
        return slot if self.wait_in_thread(slot, seconds) else None

    def wait_in_thread(self, slot: Slot, seconds: float | None = None) -> bool:
        """Wait until a slot is one's own (again); return False if that took too long."""
        turn = self._request(slot)
        until = time.monotonic() + (math.inf if seconds is None else seconds)
        try:
            while not turn.given.done():
                remaining = until - time.monotonic()
                if remaining <= 0:
                    self._give_up(turn)
                    return False
                with suppress(FutureTimeoutError):
                    turn.given.result(min(remaining, _LOOK_SECONDS))
                self._look(turn)
        except BaseException:
            self._give_up(turn)
            raise
        return True

    def release(self, slot: Slot) -> None:
        """Take a slot back, and let the next tenant have it."""
        with self._lock:
            self._taken.discard(slot)
            with logged_faults("holdfast.workers").caught("lanes"):  # the next look admits them
                self._admit()

    def _request(self, slot: Slot) -> _Turn:
        turn = _Turn(slot, Future())
        with self._lock:
            self._waiting.setdefault(slot.tenant, deque()).append(turn)
            try:
                self._admit()
            except BaseException:
                turn.given.cancel()  # otherwise it would wait for a task that has ended
                raise
        return turn

    def _look(self, turn: _Turn) -> None:
        """Admit whoever can be, where a notice was lost."""
        if not turn.given.done():
            with self._lock:
                self._admit()

    def _give_up(self, turn: _Turn) -> None:
        """Leave the queue; a slot that was given in this very moment is passed to the next task."""
        if not turn.given.cancel():
            self.release(turn.slot)

    def _admit(self) -> None:
        """Give free slots to the tenants whose turn it is."""
        for tenant in list(self._waiting):
            if not self._has_slot_for(tenant):
                continue
            queue = self._waiting.pop(tenant)
            while queue:
                turn = queue.popleft()
                if turn.given.set_running_or_notify_cancel():
                    self._taken.add(turn.slot)
                    turn.given.set_result(None)
                    break
            if queue:
                self._waiting[tenant] = queue  # at the end of the queue

    def _has_slot_for(self, tenant: str) -> bool:
        running = len(self._taken)
        if running < self.slots:
            return True
        is_new = all(slot.tenant != tenant for slot in self._taken)
        return running < self.slots + self.reserve and is_new


class _Turn(NamedTuple):
    """A task in the queue, and where it learns that the slot is its own."""

    slot: Slot
    given: Future[None]
