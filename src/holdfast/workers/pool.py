"""A few worker processes that read large contents; on a failure, only the ends are cited.

pool: after all other files of workers. Threads wait for them, never the event loop. Small contents
are read in this process: condensers take at most a second for a megabyte, so such a content blocks
the loop for less than is allowed. All contents of one request share one deadline, so that a hundred
slow ones cost no more than one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

from holdfast import errors
from holdfast.cite import Citation, CitingRules, count
from holdfast.errors import ExtractError, HoldfastError
from holdfast.expand import ExpandOptions, Expansion
from holdfast.expand.content_match import ContentMatch, MatchRules
from holdfast.expand.expansion import miss
from holdfast.extract import ExtractedText, FileKind
from holdfast.search.query import terms
from holdfast.store.refs import canonical
from holdfast.tokens import TokenCount
from holdfast.wire.strict import Limits
from holdfast.workers.ends import cite_ends
from holdfast.workers.lanes import FairLane, Slot, current_tenant
from holdfast.workers.process import WorkerGoneError, WorkerProcess
from holdfast.workers.tasks import (
    CiteResult,
    CiteTask,
    CountResult,
    CountTask,
    Done,
    ExpandResult,
    ExpandTask,
    ExtractTask,
    FailureResult,
    MatchResult,
    MatchTask,
    RefusalResult,
    Task,
    TaskAnswer,
    perform,
    with_data,
)

LARGE_BYTES = 32_000
"""Contents from this size on are read by a worker; measured in docs/discussions/workers.md."""
_LONG_BYTES = 4_000
"""From here on work is not done on the event loop: at a second for a megabyte, 4 ms of it."""
_THREADS = 64
_LONG_LANE_BYTES = 1_000_000
"""Work from this size on has a separate lane, so that short work does not wait for it."""
_RESERVE = 1
"""Slots for a tenant that has nothing at work while another's large requests are."""
_LEAST_SECONDS = 0.05
_READING_SHARE = 0.9
"""Share of the deadline for the pages of a file: pages read by then are returned, not lost."""
_MATCH_SECONDS = 2.0
"""Deadline of the passages that are opened ahead, for all contents of a request: without them the
model can still open the parts that it needs."""
_OPEN_LESS = "Ask for a few lines or another page, or answer with what you have."
_log = logging.getLogger("holdfast.workers")
_T = TypeVar("_T")


class WorkLimits(NamedTuple):
    """How many workers there are, and what each may use."""

    processes: int = 2
    """0: contents are read in this process, without limits."""
    seconds: float = 30.0
    """For all contents of a request, and for one expansion."""
    memory_bytes: int = 1_000_000_000


class Workers:
    """Reads contents in separate processes, which are started when they are first needed."""

    def __init__(self, limits: WorkLimits) -> None:
        self.limits = limits
        self.overran: Callable[[str], None] = lambda _: None
        """Told why, whenever a content could not be read; never with a word of it."""
        self._places = FairLane(limits.processes, reserve=_RESERVE if limits.processes else 0)
        # The worker that was used last is used next: a second one starts only if both are needed.
        self._idle: list[WorkerProcess] = []
        self._alive: set[WorkerProcess] = set()
        self._lock = threading.Lock()
        self._is_open = limits.processes > 0
        self._threads = ThreadPoolExecutor(_THREADS, "holdfast-work")
        # One thread runs in each lane; threads that wait for a worker are in none. The interpreter
        # runs one thread at a time, and the event loop waits for each thread that is ready: beside
        # two of them a ping took 5 ms, beside one 0.5.
        self._short_lane, self._long_lane = FairLane(1), FairLane(1, reserve=_RESERVE)
        self._here = threading.local()

    @property
    def busy(self) -> int:
        """How many workers are at work."""
        return self._places.running

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that there are now."""
        with self._lock:
            return tuple(worker.pid for worker in self._alive)

    def warm(self) -> None:
        """Start a worker before it is needed: its imports take a second."""
        slot = self._places.enter_in_thread(current_tenant(), 0)
        if slot is None:
            return
        try:
            self._put_back(self._worker(self._take_idle()))
        finally:
            slot.release()

    def recycle(self) -> None:
        """Replace all workers, those at work once they are done.

        Freed memory keeps the contents that a worker has read, also such as were forgotten since.
        """
        with self._lock:
            for worker in self._alive:
                worker.is_retired = True
            idle, self._idle = self._idle, []
            self._alive.difference_update(idle)
        for worker in idle:
            worker.close()
        if idle:
            self.warm()  # the next request does not wait for its imports

    def close(self) -> None:
        """End all workers; a content that one was at is cited by its ends."""
        with self._lock:
            self._is_open = False
            alive, self._alive = self._alive, set()
        for worker in alive:
            worker.close()
        self._threads.shutdown(wait=False)

    async def off_loop(self, size: int, work: Callable[[], _T]) -> _T:
        """Run work on `size` bytes, in a thread if it may take long.

        Tenants take turns (see `lanes`); the work of one tenant is done in order.
        """
        if size < _LONG_BYTES:
            return work()
        lane = self._short_lane if size < _LONG_LANE_BYTES else self._long_lane
        slot = await lane.enter(current_tenant())
        within = copy_context()  # pages know their reader by it
        job: Future[_T] | None = None
        try:
            job = self._threads.submit(within.run, self._run, slot, work)
            return await asyncio.wrap_future(job)
        finally:
            if job is None or job.cancelled():  # it never runs, and releases nothing
                slot.release()
            del job, slot  # an error that somebody keeps would lead here, and keep the slot taken

    def _run(self, slot: Slot, work: Callable[[], _T]) -> _T:
        self._here.slot = slot
        try:
            return work()
        finally:
            self._here.slot = None
            slot.release()

    def _while_others_run(self) -> AbstractContextManager[None]:
        slot: Slot | None = getattr(self._here, "slot", None)
        return nullcontext() if slot is None else slot.lent()

    # --- tasks -----------------------------------------------------------------------------------

    def citer(self) -> Citer:
        """What cites the contents of one request."""
        return Citer(self)

    def matcher(self) -> ContentMatcher:
        """Return a function that looks for passages in the contents of one request."""
        return ContentMatcher(self)

    def expand(
        self,
        ref_id: str,
        data: bytes,
        kind: str,
        options: ExpandOptions,
        *,
        note: str,
        opener: str,
    ) -> Expansion:
        """Open a part of a content; if that takes too long, return a text with the next step."""
        task = ExpandTask(ref_id, kind, options, note, opener)
        try:
            result = self.perform(task, data, self.limits.seconds)
        except WorkerGoneError as gone:
            self.overran(gone.kind)
            reason = f"opening this {gone}"
            return miss(reason, _OPEN_LESS, count=count, ref_id=ref_id, most=options.max_tokens)
        assert isinstance(result, ExpandResult)  # noqa: S101 - what an ExpandTask is answered with
        return result.expansion

    def count(self, body: bytes, dialect: str, model: str, limits: Limits) -> TokenCount | None:
        """Count the tokens of a request, before calibration; None if that takes too long."""
        task = CountTask(dialect, model, limits)
        try:
            result = self.perform(task, body, self.limits.seconds)
        except WorkerGoneError as gone:
            self.overran(gone.kind)
            return None
        assert isinstance(result, CountResult)  # noqa: S101 - what a CountTask is answered with
        return result.count

    def extract(self, data: bytes, kind: FileKind, url: str = "") -> ExtractedText:
        """Return the text of a file; one that a parser takes apart is always read in a worker.

        Raises:
            ExtractError: it has none, or reading it took too long or too much memory.
        """
        least = LARGE_BYTES if kind == "text" else 0
        task = ExtractTask(kind, _READING_SHARE * self.limits.seconds, url)
        try:
            result = self.perform(task, data, self.limits.seconds, at_once_below=least)
        except WorkerGoneError as gone:
            self.overran(gone.kind)
            raise ExtractError(f"reading the file {gone}") from None
        assert isinstance(result, ExtractedText)  # noqa: S101 - what an ExtractTask is answered with
        return result

    def perform(
        self, task: Task, data: bytes, seconds: float, *, at_once_below: int = LARGE_BYTES
    ) -> Done:
        """Have a task done, by a worker if it is large; WorkerGoneError if that was too much."""
        if len(data) < at_once_below or not self._is_open:
            return perform(task, data)
        with self._while_others_run():
            answer = self._asked(task, data, seconds)
        if answer is None:
            return perform(task, data)
        if isinstance(answer.result, FailureResult):
            raise WorkerGoneError(answer.result.reason, "failed")
        if isinstance(answer.result, RefusalResult):
            raise _error(answer.result)
        return answer.result

    def _asked(self, task: Task, data: bytes, seconds: float) -> TaskAnswer | None:
        """Return a worker's answer; None without a worker, or if the task cannot be sent to it."""
        until = time.monotonic() + seconds
        slot = self._places.enter_in_thread(current_tenant(), max(seconds, _LEAST_SECONDS))
        if slot is None:
            raise WorkerGoneError("found no worker free in time", "busy")
        worker = None
        try:
            worker = self._worker(self._take_idle())
            if worker is None:
                return None
            return worker.ask(task, data, max(until - time.monotonic(), _LEAST_SECONDS))
        except UnicodeEncodeError:  # options with a lone surrogate
            return None
        finally:
            try:
                self._put_back(worker)
            finally:
                slot.release()

    def _take_idle(self) -> WorkerProcess | None:
        """Return the worker that was used last; None if a new one is to be started."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _put_back(self, worker: WorkerProcess | None) -> None:
        """Keep a worker for the next task; one that is retired, or of a reserved slot, ends."""
        if worker is None:
            return
        with self._lock:
            if len(self._idle) < self.limits.processes and not worker.is_retired:
                self._idle.append(worker)
                return
            self._alive.discard(worker)
        worker.close()

    def _worker(self, place: WorkerProcess | None) -> WorkerProcess | None:
        """Return the worker of a place, a new one if it has ended; None if none can be started."""
        if place is not None and place.is_alive:
            return place
        try:
            worker = WorkerProcess(self.limits.memory_bytes)
        except OSError as error:
            # Such as a program that was packed without an interpreter: the work is done here.
            self._is_open = False
            _log.warning("no worker can be started (%s): contents are read here", error.errno)
            return None
        with self._lock:
            if place is not None:
                self._alive.discard(place)
                place.close()
            if self._is_open:
                self._alive.add(worker)
                return worker
        worker.close()
        return None


class Citer:
    """Cites the contents of one request, all of them before one deadline."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._spent = 0.0

    def __call__(
        self,
        content: Any,
        *,
        kind: str | None = None,
        question: str | None = None,
        source_url: str | None = None,
        tool: str = "",
        rules: CitingRules,
    ) -> Citation:
        """Cite a content as `cite` does; by its ends, if it cannot be read in time."""
        data = canonical(content)
        task = CiteTask(rules, kind, question, source_url, tool)
        workers = self._workers
        began = time.monotonic()
        try:
            result = workers.perform(task, data, workers.limits.seconds - self._spent)
        except WorkerGoneError as gone:
            workers.overran(gone.kind)
            return cite_ends(data, str(gone), rules, tool)
        finally:
            self._spent += time.monotonic() - began
        assert isinstance(result, CiteResult)  # noqa: S101 - what a CiteTask is answered with
        return with_data(result.citation, data)


class ContentMatcher:
    """Looks for passages in the contents of one request, all of them before one deadline."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._until: float | None = None

    def __call__(
        self, ref_id: str, data: bytes, kind: str, question: str, rules: MatchRules
    ) -> ContentMatch:
        """Match a content as `match_content` does; one that takes too long matches nothing."""
        now = time.monotonic()
        self._until = self._until or now + min(_MATCH_SECONDS, self._workers.limits.seconds)
        try:
            task = MatchTask(ref_id, kind, question, rules)
            result = self._workers.perform(task, data, self._until - now)
        except WorkerGoneError as gone:
            self._workers.overran(gone.kind)
            return ContentMatch(passages=0, holders=(0,) * len(terms(question)), best=())
        assert isinstance(result, MatchResult)  # noqa: S101 - what a MatchTask is answered with
        return result.match


def _error(refused: RefusalResult) -> HoldfastError:
    """The error that a worker raised, for whoever asked."""
    kind = getattr(errors, refused.kind, HoldfastError)
    error: HoldfastError = kind(refused.what, where=refused.where, fix=refused.fix)
    return error
