"""The clock of a file's jobs neither jumps nor goes back, even if the system clock is set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.store.operations.job_claims import OneByOne
from holdfast.store.operations.jobs import SqlJobQueue
from holdfast.store.queue import Claim, NewJob
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.ticking import FileClock
from tests.store.harness import HERE, Clock

CLAIM = Claim(kinds=("x",), lease_seconds=60.0)
DECADE = 10 * 365 * 86_400.0


class Machine:
    """Processes of one machine over one file: a clock that people set, and one that only counts."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "holdfast.db"
        self.wall = Clock()
        self.since_start = Clock(5_000.0)
        self.boot = "first"

    def pass_by(self, seconds: float) -> None:
        self.wall.advance(seconds)
        self.since_start.advance(seconds)

    def start_again(self) -> None:
        self.boot, self.since_start.now = "second", 10.0

    def run(self, work: Callable[[SqlJobQueue], Awaitable[None]]) -> None:
        async def main() -> None:
            store = await SqliteStore.open(self.path)
            ticking = FileClock(self.wall, self.since_start, self.boot)
            await work(SqlJobQueue(store._runner, ticking, OneByOne()))
            await store.close()

        asyncio.run(main())


@pytest.mark.parametrize("jump", [DECADE, -DECADE])
def test_a_clock_that_jumps_takes_no_job_from_its_worker_and_keeps_none(
    tmp_path: Path, jump: float
) -> None:
    machine = Machine(tmp_path)

    async def work(queue: SqlJobQueue) -> None:
        await queue.enqueue(HERE, [NewJob(kind="x", key="k")])
        (job,) = await queue.claim(CLAIM)
        machine.wall.advance(jump)
        assert await queue.claim(CLAIM) == []
        machine.pass_by(59.0)
        assert await queue.recover() == 0
        machine.pass_by(1.0)
        assert await queue.recover() == 1
        (again,) = await queue.claim(CLAIM)
        assert not await queue.finish(job)
        assert await queue.fail(again, "x", delay_seconds=10.0)
        (seen,) = await queue.latest(HERE)
        assert seen.next_attempt_at == pytest.approx(machine.wall.now + 10)
        machine.wall.advance(-jump)
        machine.pass_by(10.0)
        assert await queue.claim(CLAIM)

    machine.run(work)


@pytest.mark.parametrize("jump", [0.0, DECADE, -DECADE])
def test_after_a_start_of_the_machine_time_goes_on(tmp_path: Path, jump: float) -> None:
    machine = Machine(tmp_path)

    async def before(queue: SqlJobQueue) -> None:
        await queue.enqueue(HERE, [NewJob(kind="x", key="k"), NewJob(kind="x", key="later")])
        assert await queue.claim(CLAIM)
        (job,) = await queue.claim(CLAIM)
        await queue.fail(job, "x", delay_seconds=100.0)

    async def after(queue: SqlJobQueue) -> None:
        await queue.recover()  # how long the machine was off, nobody knows: from here it counts
        machine.pass_by(100.0)
        await queue.recover()
        both = await queue.claim(Claim(kinds=("x",), limit=2))
        assert {job.key for job in both} == {"k", "later"}

    machine.run(before)
    machine.start_again()
    machine.wall.advance(jump)
    machine.run(after)


def test_the_real_clock_goes_with_the_kernels_seconds(tmp_path: Path) -> None:
    async def work() -> None:
        store = await SqliteStore.open(tmp_path / "holdfast.db")
        await store.jobs.enqueue(HERE, [NewJob(kind="x", key="k", delay_seconds=100.0)])
        (job,) = await store.jobs.latest(HERE)
        assert job.next_attempt_at == pytest.approx(time.time() + 100, abs=60)
        await store.close()

    asyncio.run(work())
