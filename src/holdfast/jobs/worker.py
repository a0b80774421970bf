"""A worker: claims jobs, runs them, renews their leases, and returns unfinished ones.

It does not depend on the system clock: leases use the store's clock, and pauses the loop's. While
the store is unavailable it keeps finished results, and writes them later.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import HoldfastError, StoreError, StoreUnavailableError
from holdfast.jobs.protocol import Attempt, Handler, Outcome
from holdfast.store.queue import IDLE_SECONDS, LEASE_SECONDS, Claim, Job, JobQueue, JobState, Quotas

_BEATS = 3
"""Heartbeats in a lease: two may be late before it is lost."""
_FIRST_DELAY_SECONDS = 10.0
_LONGEST_DELAY_SECONDS = 3600.0
_LONGEST_ASKED_SECONDS = 86_400.0
"""Maximum wait that a provider may request: `Retry-After: 9999999999` would mean never."""
_GATHER_SECONDS = 0.005
_STOP_SECONDS = 10.0
"""How long jobs may take to be handed back; then their leases run out."""


class WorkerRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a worker."""

    slots: int = 4
    """Jobs that it does at once."""
    lease_seconds: float = LEASE_SECONDS
    idle_seconds: float = IDLE_SECONDS
    quotas: Quotas = Quotas()


class _Handled(NamedTuple):
    """A handler's result that is not written yet."""

    state: JobState
    ending: Callable[[], Awaitable[bool]]
    cost: int
    why: str


class Worker:
    """Does jobs until it is stopped; many may run beside each other."""

    def __init__(
        self,
        queue: JobQueue,
        handlers: Mapping[str, Handler],
        rules: WorkerRules | None = None,
        *,
        told: Callable[[Attempt], None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._handlers = handlers
        self._rules = rules or WorkerRules()
        self.told = told
        """Hears of each attempt that ended."""
        self.store_fails = False
        """Whether the store was away when it was last asked."""
        self._running: dict[asyncio.Task[None], Job] = {}
        self._handled: set[int] = set()
        """Jobs with a running handler: a job whose result is being written is never cancelled."""
        self._stopping = asyncio.Event()
        self._turn = 0

    def stop(self) -> None:
        """Claim no more jobs, and return the running ones."""
        self._stopping.set()

    async def stopped(self, seconds: float) -> bool:
        """Wait for so long, or until `stop`; whether it came to that."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()

    async def run(self) -> None:
        """Work until `stop`, or until this is cancelled."""
        beating = asyncio.create_task(self._beat())
        try:
            while not self._stopping.is_set():
                claimed = await self._claim()
                for job in claimed:
                    self._running[asyncio.create_task(self._do(job))] = job
                if not claimed or not self._free:
                    await self._pause()
                self._forget_ended()
        finally:
            self._stopping.set()
            beating.cancel()
            await self._hand_back()

    @property
    def _free(self) -> int:
        return self._rules.slots - sum(not task.done() for task in self._running)

    def _forget_ended(self) -> None:
        self._running = {task: job for task, job in self._running.items() if not task.done()}

    async def _claim(self) -> list[Job]:
        """Take as many jobs as there is room for; none while the store is away."""
        if not self._free or not self._handlers:
            return []
        # Kinds take turns at being first, so that none waits for ever.
        kinds = tuple(self._handlers)
        self._turn = (self._turn + 1) % len(kinds)
        claim = Claim(
            kinds=tuple(islice(cycle(kinds), self._turn, self._turn + len(kinds))),
            limit=self._free,
            lease_seconds=self._rules.lease_seconds,
            quotas=self._rules.quotas,
        )
        try:
            claimed = await self._queue.claim(claim)
        except StoreError:
            self.store_fails = True
            return []
        self.store_fails = False
        return claimed

    async def _pause(self) -> None:
        """Wait until a job may be there and there is room for it, or it is time to look."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._stopping.wait())]
        if self._free:
            waits.append(asyncio.create_task(self._woken()))
        try:
            ended, _ = await asyncio.wait(
                {*waits, *self._running},
                timeout=self._rules.idle_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            still = self._running.keys() - ended
            if still and ended - set(waits):
                # Short jobs end together, so their slots are claimed in one call.
                await asyncio.wait(still, timeout=_GATHER_SECONDS)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _woken(self) -> None:
        if self.store_fails:  # it could not report; an immediate retry would not help
            await asyncio.sleep(self._rules.idle_seconds)
        await self._queue.wait(self._rules.idle_seconds)

    async def _beat(self) -> None:
        """Renew the leases of running jobs, and take over those of dead workers."""
        while True:
            await asyncio.sleep(self._rules.lease_seconds / _BEATS)
            with suppress(StoreError):  # the next beat may come in time
                running = {task: job for task, job in self._running.items() if not task.done()}
                if running:
                    renewed = await self._queue.renew(
                        list(running.values()), self._rules.lease_seconds
                    )
                    # Other workers have these now: further cost would be wasted.
                    self._cut_off({task for task, job in running.items() if job.id not in renewed})
                await self._queue.recover()

    def _cut_off(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        for task in tasks:
            if self._running[task].id in self._handled:
                task.cancel()

    async def _do(self, job: Job) -> None:
        """One attempt, from its beginning to its record."""
        began = time.monotonic()
        handled = await self._handle(job)
        try:
            is_ours = await self._settled(handled.ending)
        except StoreError as error:  # the store is available, but refuses the handler's result
            handled = self._failure(job, error)
            is_ours = await self._settled(handled.ending)
        self.told(
            Attempt(
                kind=job.kind,
                state=handled.state if is_ours else "running",
                seconds=time.monotonic() - began,
                cost=handled.cost,
                error=handled.why,
            )
        )

    async def _handle(self, job: Job) -> _Handled:
        """Run a job; return the result to write."""
        self._handled.add(job.id)
        try:
            return self._outcome(job, await self._handlers[job.kind](job))
        except KeyboardInterrupt:
            raise  # the user's interrupt, anywhere
        except asyncio.CancelledError as error:
            if not _is_cut_off():  # it came from within: released, it would come back at once
                return self._failure(job, error)
            # Its cost is unknown: assume the maximum, so that no quota is exceeded. If another
            # worker has it now, nothing changes.
            cost = job.most_cost
            release = partial(self._queue.release, job, cost=cost)
            return _Handled("queued", release, cost, "it was cut off")
        # A bug in a handler must not end the worker, nor a vendor's client that calls `sys.exit`.
        except BaseException as error:  # noqa: BLE001
            return self._failure(job, error)
        finally:
            self._handled.discard(job.id)

    def _failure(self, job: Job, error: BaseException) -> _Handled:
        why, cost = _told(error), job.most_cost
        delay = None if job.is_spent else _delay(job, error)
        failing = partial(self._queue.fail, job, why, cost=cost, delay_seconds=delay)
        return _Handled("failed", failing, cost, why)

    def _outcome(self, job: Job, outcome: Outcome) -> _Handled:
        cost, again = outcome.cost, outcome.again_seconds
        if why := outcome.skipped:
            skip = partial(self._queue.skip, job, why, cost=cost, delay_seconds=again)
            return _Handled("skipped", skip, cost, why)
        finish = partial(
            self._queue.finish,
            job,
            cost=cost,
            summary=outcome.summary,
            gist=outcome.gist,
            again_seconds=again,
        )
        return _Handled("done", finish, cost, "")

    async def _settled(self, ending: Callable[[], Awaitable[bool]]) -> bool:
        """Write down how an attempt ended, as soon as the store is there for it."""
        while True:
            try:
                return await ending()
            except StoreUnavailableError:
                self.store_fails = True
                if self._stopping.is_set():
                    return False  # its lease will run out
            await self.stopped(self._rules.idle_seconds)

    async def _hand_back(self) -> None:
        """Stop running jobs, and return them to the queue."""
        self._forget_ended()
        self._cut_off(self._running)
        if self._running:
            await asyncio.wait(self._running, timeout=_STOP_SECONDS)


def _is_cut_off() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _told(error: BaseException) -> str:
    """Return the reason of a failed attempt: the text of our errors, the place of others."""
    if isinstance(error, HoldfastError):
        return f"{type(error).__name__}: {error.what}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


def _delay(job: Job, error: BaseException) -> float:
    """Longer from attempt to attempt, and as a provider asks for; a day is the most."""
    errors = (error, *getattr(error, "failures", ()))  # of providers that were asked in turn
    delays = [float(getattr(each, "retry_after", None) or 0.0) for each in errors]
    return max(min(max(delays), _LONGEST_ASKED_SECONDS), delay_after(job.attempts, job.id))


def delay_after(attempts: int, spread: int = 0) -> float:
    """Return the delay: ten seconds, then four times as long each time, at most an hour.

    Jobs that failed together do not return together: their ids spread them over a quarter of the
    delay.
    """
    longer = _FIRST_DELAY_SECONDS * 4.0 ** min(max(attempts - 1, 0), 10)
    return min(longer, _LONGEST_DELAY_SECONDS) * (1 + spread % 16 / 64)
