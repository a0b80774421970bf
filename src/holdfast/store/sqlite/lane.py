"""A thread with its own connection, which runs all waiting jobs in one batch.

Waking a thread costs a tenth of a millisecond, and so does waking the event loop: jobs in a batch
share both costs.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.faults import logged_faults
from holdfast.store.deadline import Breaker
from holdfast.store.sqlite.driver import Job

MOST_TOGETHER = 256
"""Jobs that are done in one go at most, so that other processes get their turn."""

_T = TypeVar("_T")


class QueuedWork(NamedTuple):
    """A job, and who waits for it."""

    job: Job[Any]
    future: asyncio.Future[Any]
    """Of the loop of who waits: only there it may be touched."""


class WorkOutcome(NamedTuple):
    """What became of a job."""

    future: asyncio.Future[Any]
    result: Any
    error: BaseException | None = None


class _Closable(Protocol):
    def close(self) -> None: ...


_Db = TypeVar("_Db", bound=_Closable)
Work = Callable[[_Db, list[QueuedWork]], list[WorkOutcome]]
"""Runs a batch of jobs; returns errors, and raises none."""


class Lane(Generic[_Db]):
    """Runs jobs in order, in a separate thread."""

    def __init__(
        self, db: _Db, work: Work[_Db], where: str, name: str, breaker: Breaker | None = None
    ) -> None:
        self._where = where
        self._breaker = breaker
        """Ends the wait for a job at the deadline of whoever waits."""
        self._queue: queue.SimpleQueue[QueuedWork | None] = queue.SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        """Held while queueing and closing: nothing is queued after the end."""
        self._thread = threading.Thread(target=self._run, args=(db, work), name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job[_T]) -> asyncio.Future[_T]:
        """Queue a job."""
        if self._breaker is not None:
            self._breaker.admit()
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        with self._closing:
            # A thread does not come along into a forked process: nobody would ever do the job.
            if self._closed or not self._thread.is_alive():
                raise closed(self._where)
            self._queue.put(QueuedWork(job, future))
        if self._breaker is not None:
            self._breaker.bound(future, _leave_to_the_lane)
        return future

    def close(self) -> None:
        """Finish queued jobs, then stop."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self, db: _Db, work: Work[_Db]) -> None:
        """Run jobs until the lane is closed; a failed job does not affect others.

        The first job is taken here, where nothing of ours can fail: a job that is never taken would
        be awaited for ever.
        """
        faults = logged_faults("holdfast.store")
        while (first := self._queue.get()) is not None:
            together = [first]
            with faults.caught("store"):
                try:
                    outcomes = self._outcomes(db, work, together)
                except BaseException as error:  # noqa: BLE001 - whoever waits must be told
                    outcomes = [WorkOutcome(item.future, None, error) for item in together]
                _deliver(outcomes)
                del outcomes
            del first, together  # nothing is held while the thread waits for the next job
        db.close()

    def _outcomes(self, db: _Db, work: Work[_Db], together: list[QueuedWork]) -> list[WorkOutcome]:
        """Run a job, and the jobs that wait after it, which are added to `together`."""
        self._take_waiting(together)
        # A cancelled or expired caller was told that nothing was stored.
        pending = [item for item in together if not item.future.done()]
        return work(db, pending) if pending else []

    def _take_waiting(self, together: list[QueuedWork]) -> None:
        """Take the jobs that wait, without waiting for one."""
        while len(together) < MOST_TOGETHER:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._queue.put(None)
                break
            together.append(item)


def _leave_to_the_lane() -> None:
    """Do nothing: a job whose future is done is not begun."""


def _deliver(outcomes: list[WorkOutcome]) -> None:
    """Tell all who wait, in one step of their loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WorkOutcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome.future.get_loop(), []).append(outcome)
    for loop, theirs in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(outcomes: list[WorkOutcome]) -> None:
    for future, result, error in outcomes:
        if future.done():  # the caller was cancelled
            continue
        if error is not None:
            future.set_exception(error_for_future(error))
        else:
            future.set_result(result)


def error_for_future(error: BaseException) -> BaseException:
    """Return the error, or a RuntimeError for StopIteration, which no future takes."""
    if not isinstance(error, StopIteration):
        return error
    raised = RuntimeError("a job raised StopIteration")
    raised.__cause__ = error
    return raised


def closed(where: str) -> StoreError:
    """The error of who comes too late."""
    return StoreUnavailableError(
        "the store is closed", where=where, fix="Open it again with open_store."
    )
