"""One deadline for all store work on a request's path, and a circuit breaker.

A store may hang: a frozen server, a lock of another program, a disk that does not respond. A
request's handler enters `store_deadline`; all store operations inside share its two seconds, and
then raise StoreUnavailableError. Work outside of a request (records of turns, jobs, commands) has
no deadline, because nobody waits for it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import StoreError, StoreUnavailableError

REQUEST_SECONDS = 2.0
"""Time that a request may wait for the store, all operations together."""
PROBE_SECONDS = 0.5
"""Pause between two probes of a store that hangs."""
SLOW_SECONDS = 1.0
"""An operation that took so long and succeeded shows a store with too much to do, not one that
hangs: opening the breaker then would turn a slow store into none."""

_T = TypeVar("_T")


class StoreBudget:
    """Seconds that one request may still wait for the store."""

    __slots__ = ("_running", "_since", "is_probe", "seconds")

    def __init__(self, seconds: float, *, is_probe: bool = False) -> None:
        self.seconds = seconds
        self.is_probe = is_probe
        """Whether the breaker lets it pass while it is open."""
        self._running = 0
        self._since = 0.0

    def begin(self, now: float) -> float:
        """Begin an operation, and return the seconds that it may take."""
        if not self._running:
            self._since = now
        self._running += 1
        return self.seconds - (now - self._since)

    def end(self, now: float) -> None:
        """End an operation. Operations that run at the same time are charged once."""
        self._running -= 1
        if not self._running:
            self.seconds -= now - self._since


_budget: ContextVar[StoreBudget | None] = ContextVar("holdfast_store_budget", default=None)


@contextmanager
def store_deadline(seconds: float = REQUEST_SECONDS, *, is_probe: bool = False) -> Iterator[None]:
    """Limit all store operations inside to a number of seconds together.

    With `math.inf` they only fail fast while the breaker is open.
    """
    token = _budget.set(StoreBudget(seconds, is_probe=is_probe))
    try:
        yield
    finally:
        _budget.reset(token)


def has_deadline() -> bool:
    """Return whether the caller may wait for the store for a limited time only."""
    budget = _budget.get()
    return budget is not None and budget.seconds < math.inf


def without_deadline() -> Context:
    """Return the caller's context for a task that outlives the request: it may wait."""
    context = copy_context()
    context.run(_budget.set, None)
    return context


class Breaker:
    """Ends operations of one store at their deadline, and fails fast while the store hangs.

    While the breaker is open, `check` runs in the background until it succeeds, so that service
    recovers without a request that has to wait for it.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.check: Callable[[], Awaitable[None]] = _nothing_to_check
        """Reads and writes the store, or raises."""
        self.is_open = False
        self._slow_success = float("-inf")
        """When an operation last succeeded after a long wait."""
        self._probing: asyncio.Task[None] | None = None

    def admit(self) -> None:
        """Raise if the store hangs and the caller is a request."""
        budget = _budget.get()
        if self.is_open and budget is not None and not budget.is_probe:
            self._probe_soon()
            raise self._unavailable()

    def bound(self, future: asyncio.Future[Any], abandon: Callable[[], object]) -> None:
        """Fail a future at the caller's deadline, if it has one.

        `abandon` is called then: it stops the work of the future.
        """
        budget = _budget.get()
        if budget is None or budget.seconds == math.inf:
            return
        loop = future.get_loop()
        began = loop.time()
        seconds = max(budget.begin(began), 0.0)
        timer = loop.call_later(seconds, self._expire, future, abandon)
        future.add_done_callback(partial(self._ended, timer, budget, began))

    async def run(
        self, source: asyncio.Future[_T], abandon: Callable[[], object] = lambda: None
    ) -> _T:
        """Wait for a task, at most until the caller's deadline; then cancel it unawaited.

        Nobody waits for a cancelled task: asyncpg's cancellation is itself a message to the server,
        and a frozen one does not answer it.
        """
        budget = _budget.get()
        if budget is None or budget.seconds == math.inf:
            return await source
        loop = source.get_loop()
        began = loop.time()
        seconds = max(budget.begin(began), 0.0)
        try:
            done, _ = await asyncio.wait({source}, timeout=seconds)
        finally:
            now = loop.time()
            budget.end(now)
            if not source.done():
                source.add_done_callback(_retrieve_error)
                source.cancel()
        if not done:
            self._open_unless_slow(now)
            abandon()
            raise self._unavailable()
        result = source.result()
        self._note_success(began, now)
        return result

    def close(self) -> None:
        """Stop probing; the store is being closed."""
        task, self._probing = self._probing, None
        if task is not None and not task.done() and not task.get_loop().is_closed():
            with suppress(RuntimeError):  # its loop has ended since
                task.get_loop().call_soon_threadsafe(task.cancel)

    def _expire(self, future: asyncio.Future[Any], abandon: Callable[[], object]) -> None:
        if future.done():
            return
        future.set_exception(self._unavailable())
        self._open_unless_slow(future.get_loop().time())
        abandon()

    def _open_unless_slow(self, now: float) -> None:
        """Open the breaker at a deadline, unless the store did something lately."""
        if now - self._slow_success > SLOW_SECONDS:
            self.is_open = True
            self._probe_soon()

    def _ended(
        self,
        timer: asyncio.TimerHandle,
        budget: StoreBudget,
        began: float,
        future: asyncio.Future[Any],
    ) -> None:
        timer.cancel()
        now = future.get_loop().time()
        budget.end(now)
        if not future.cancelled() and future.exception() is None:
            self._note_success(began, now)

    def _note_success(self, began: float, now: float) -> None:
        if now - began >= SLOW_SECONDS:
            self._slow_success = now

    def _probe_soon(self) -> None:
        task, loop = self._probing, asyncio.get_running_loop()
        # A probe of a loop that was closed (one `asyncio.run` after another) never ends.
        if task is None or task.done() or task.get_loop() is not loop:
            self._probing = loop.create_task(self._probe(), context=without_deadline())

    async def _probe(self) -> None:
        while self.is_open:
            await asyncio.sleep(PROBE_SECONDS)
            with suppress(StoreError), store_deadline(is_probe=True):
                await self.check()
                self.is_open = False

    def _unavailable(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"the store did not answer within {REQUEST_SECONDS:g} seconds",
            where=self._where,
            fix="Look for what holds it: a frozen server, a lock, a disk that hangs.",
        )


async def _nothing_to_check() -> None:
    """Stand in until the store is open."""


def _retrieve_error(source: asyncio.Future[Any]) -> None:
    """Take the error of a task that nobody waits for: asyncio would log its text otherwise."""
    if not source.cancelled():
        source.exception()
