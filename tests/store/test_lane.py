"""A lane of the SQLite store: jobs of one batch return together, and none waits for another."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store.deadline import Breaker
from holdfast.store.sqlite.file import StoreFile
from holdfast.store.sqlite.lane import MOST_TOGETHER, Lane, QueuedWork, WorkOutcome
from holdfast.store.sqlite.writer import FileReaders


class Gate:
    """A job that waits for a signal, so that others queue after it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def job(self, _: apsw.Connection) -> str:
        self.entered.set()
        assert self.opened.wait(30)
        return "through"


def _each(db: apsw.Connection, together: list[QueuedWork]) -> list[WorkOutcome]:
    return [WorkOutcome(item.future, item.job(db)) for item in together]


@pytest.fixture
def lane() -> Iterator[Lane[apsw.Connection]]:
    lane = Lane(apsw.Connection(":memory:"), _each, "here", "test-lane")
    yield lane
    lane.close()


def test_who_waits_together_is_told_in_one_step_and_in_order(lane: Lane[apsw.Connection]) -> None:
    async def main() -> None:
        loop, told = asyncio.get_running_loop(), 0
        call_soon_threadsafe = loop.call_soon_threadsafe

        def counted(*args: Any) -> asyncio.Handle:
            nonlocal told
            told += 1
            return call_soon_threadsafe(*args)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign,assignment]
        gate = Gate()
        first = lane.submit(gate.job)
        assert gate.entered.wait(30)
        others = [lane.submit(lambda _, n=n: n) for n in range(100)]  # type: ignore[misc]
        gate.opened.set()
        assert await first == "through"
        assert await asyncio.gather(*others) == list(range(100))
        assert told == 2

    asyncio.run(main())


def _no_memory(*_: object) -> list[WorkOutcome]:
    raise MemoryError


@pytest.mark.parametrize("step", ["_take_waiting", "_outcomes"])
def test_a_lane_that_cannot_work_tells_whoever_waits(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lane, step, _no_memory)
    lane = Lane(apsw.Connection(":memory:"), _each, "here", "test-lane")

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(MemoryError):
                await asyncio.wait_for(lane.submit(lambda _: 1), 30)

    asyncio.run(main())
    lane.close()


def test_job_of_who_left_is_not_done(lane: Lane[apsw.Connection]) -> None:
    async def main() -> None:
        gate, done = Gate(), []
        first = lane.submit(gate.job)
        assert gate.entered.wait(30)
        left = lane.submit(lambda _: done.append("left"))
        stayed = lane.submit(lambda _: done.append("stayed"))
        left.cancel()
        gate.opened.set()
        await first
        await stayed
        assert done == ["stayed"]

    asyncio.run(main())


def test_loop_that_is_gone_does_not_end_the_lane(lane: Lane[apsw.Connection]) -> None:
    gate = Gate()

    async def leave() -> None:
        lane.submit(gate.job)

    async def ask() -> int:
        return await lane.submit(lambda _: 2)

    asyncio.run(leave())
    gate.opened.set()
    assert asyncio.run(ask()) == 2


def test_two_loops_at_once_get_each_their_own(lane: Lane[apsw.Connection]) -> None:
    results: dict[int, list[int]] = {}

    async def ask(number: int) -> None:
        jobs = [lane.submit(lambda _, n=n: number * 1000 + n) for n in range(200)]  # type: ignore[misc]
        results[number] = await asyncio.gather(*jobs)

    threads = [threading.Thread(target=lambda n=n: asyncio.run(ask(n))) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [number * 1000 + n for n in range(200)] for number in range(2)}


def test_lane_that_is_closed_refuses_and_finishes_what_was_queued() -> None:
    async def main() -> None:
        lane = Lane(apsw.Connection(":memory:"), _each, "here", "test-lane")
        queued = lane.submit(lambda _: 1)
        await asyncio.to_thread(lane.close)
        assert await queued == 1
        with pytest.raises(StoreUnavailableError, match="closed"):
            lane.submit(lambda _: 2)

    asyncio.run(main())


@pytest.mark.parametrize("jobs", [0, 1, MOST_TOGETHER - 1, MOST_TOGETHER, 2 * MOST_TOGETHER])
def test_a_lane_ends_however_many_jobs_are_taken_together_with_its_end(jobs: int) -> None:
    async def main() -> None:
        lane = Lane(apsw.Connection(":memory:"), _each, "here", "test-lane")
        gate = Gate()
        first = lane.submit(gate.job)
        await asyncio.to_thread(gate.entered.wait, 30)
        queued = [lane.submit(lambda _, n=n: n) for n in range(jobs)]  # type: ignore[misc]
        closing = threading.Thread(target=lane.close, daemon=True)
        closing.start()
        while not lane._closed:
            await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.to_thread(closing.join, 30)
        assert not closing.is_alive()
        assert await first == "through"
        assert await asyncio.gather(*queued) == list(range(jobs))

    asyncio.run(main())


def test_look_that_fails_is_told_in_our_words_and_harms_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        readers = FileReaders(StoreFile(tmp_path / "a.db", 1.0), Breaker("here"))
        looks = [
            readers.look(lambda db: db.execute("SELECT 1").get),
            readers.look(lambda db: db.execute("SELECT * FROM nowhere").get),
            readers.look(lambda db: db.execute("SELECT 3").get),
        ]
        one, failed, three = await asyncio.gather(*looks, return_exceptions=True)
        assert (one, three) == (1, 3)
        assert isinstance(failed, StoreError)
        assert failed.where == str(tmp_path / "a.db")
        await asyncio.to_thread(readers.close)

    asyncio.run(main())


def test_who_waits_behind_a_job_that_raises_what_no_future_takes_is_told_too(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        readers = FileReaders(StoreFile(tmp_path / "a.db", 1.0), Breaker("here"))
        gate = Gate()
        first = asyncio.ensure_future(readers.look(gate.job))
        await asyncio.sleep(0)
        assert gate.entered.wait(30)
        looks = [readers.look(lambda _: next(iter(()))), readers.look(lambda _: 2)]
        both = asyncio.gather(*looks, return_exceptions=True)
        await asyncio.sleep(0)
        gate.opened.set()
        async with asyncio.timeout(10):
            assert await first == "through"
            failed, two = await both
        assert isinstance(failed, RuntimeError)
        assert isinstance(failed.__cause__, StopIteration)
        assert two == 2
        await asyncio.to_thread(readers.close)

    asyncio.run(main())


def test_nothing_is_queued_behind_the_end(lane: Lane[apsw.Connection]) -> None:
    """Another thread closes the lane, and a request may arrive at the same moment."""
    ended = threading.Event()
    closing = threading.Thread(target=lane.close)
    put = lane._queue.put

    class Queue:
        get, get_nowait = lane._queue.get, lane._queue.get_nowait

        def put(self, item: QueuedWork | None) -> None:
            if item is None:
                put(item)
                ended.set()
            else:
                closing.start()
                ended.wait(0.05)  # times out, because `close` waits for us
                put(item)

    lane._queue = Queue()  # type: ignore[assignment]

    async def main() -> None:
        async with asyncio.timeout(10):
            assert await lane.submit(lambda _: 1) == 1

    asyncio.run(main())
    closing.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_process_is_told_that_the_lane_did_not_come_along(
    lane: Lane[apsw.Connection],
) -> None:
    child = os.fork()
    if not child:
        told = 1
        try:
            with pytest.raises(StoreUnavailableError):
                asyncio.run(_submitted(lane))
            told = 0
        finally:
            os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(_submitted(lane)) == 1


async def _submitted(lane: Lane[apsw.Connection]) -> int:
    async with asyncio.timeout(10):
        return await lane.submit(lambda _: 1)
