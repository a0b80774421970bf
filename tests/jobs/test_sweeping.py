"""Expired records are removed automatically: by a worker, in the library, for all tenants."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.engine import Holdfast
from holdfast.jobs import Attempt, Worker, background
from holdfast.jobs.running import handlers
from holdfast.jobs.sweeping import JOB, KEPT_SECONDS, KIND, Sweeper
from holdfast.settings import Settings
from holdfast.store import Scope, Store, open_store
from holdfast.store.opening import open_memory
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.queue import Claim, NewJob
from tests.store.harness import HERE, OTHER_WORKSPACE, Clock, content, session, turn

DAY = 86_400.0


async def swept(store: Store, clock: Clock, **settings: float) -> float | None:
    """Sweep once; when the next sweep is."""
    await store.jobs.enqueue(Scope(), [JOB])
    (job,) = await store.jobs.claim(Claim(kinds=(KIND,)))
    outcome = await Sweeper(store, Settings(**settings), clock)(job)  # type: ignore[arg-type]
    await store.jobs.finish(job, again_seconds=outcome.again_seconds)
    (seen,) = await store.jobs.latest(None, kind=KIND)
    return seen.next_attempt_at


def test_content_past_its_time_and_of_closed_sessions_goes_in_every_workspace() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        for scope in (HERE, OTHER_WORKSPACE):
            await store.put(scope.of(""), [content("stale", ttl_seconds=1.0), content("kept")])
            await store.put(scope, [content("left")])
            await store.close_session(scope)
        clock.advance(2 * GRACE_SECONDS)
        assert await swept(store, clock) == clock.now + 3600
        for scope in (HERE, OTHER_WORKSPACE):
            left = await store.refs(scope.of(""))
            assert [info.ref_id for info in left] == [content("kept").ref_id]

    asyncio.run(work())


def test_a_sweep_goes_by_the_clock_that_its_worker_is_given() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        await store.put(HERE, [content("left")])
        await store.add_turn(HERE, turn(1), session(updated_at=clock.now), {})
        clock.advance(9 * DAY)
        await store.jobs.enqueue(Scope(), [JOB])
        (job,) = await store.jobs.claim(Claim(kinds=(KIND,)))
        await handlers(store, Settings(retain_days=10), clock)[KIND](job)
        assert await store.session(HERE) is not None
        clock.advance(2 * DAY)
        await handlers(store, Settings(retain_days=10), clock)[KIND](job)
        assert await store.session(HERE) is None

    asyncio.run(work())


def test_sessions_that_nobody_uses_are_closed_only_if_that_is_asked_for() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        await store.put(HERE, [content("left")])
        await store.add_turn(HERE, turn(1), session(updated_at=clock.now), {})
        clock.advance(30 * DAY)
        await swept(store, clock)
        record = await store.session(HERE)
        assert record is not None
        assert record.closed_at is None
        clock.advance(DAY)
        await swept(store, clock, sweep_idle_days=30.0)
        record = await store.session(HERE)
        assert record is not None
        assert record.closed_at == clock.now

    asyncio.run(work())


def test_sessions_older_than_retain_days_are_deleted_by_the_sweep() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        await store.put(HERE, [content("left")])
        await store.add_turn(HERE, turn(1), session(updated_at=clock.now), {})
        clock.advance(30 * DAY + 1)
        new = HERE.of("new")
        await store.add_turn(new, turn(1), session("new", updated_at=clock.now), {})
        await swept(store, clock)
        assert await store.session(HERE) is not None
        clock.advance(DAY)
        await swept(store, clock, retain_days=30.0)
        assert [record.session for record in await store.sessions(HERE)] == ["new"]
        assert await store.refs(HERE.of("")) == []

    asyncio.run(work())


def test_jobs_that_are_long_over_are_forgotten() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        await store.jobs.enqueue(HERE, [NewJob(kind="x", key="k")])
        (job,) = await store.jobs.claim(Claim(kinds=("x",)))
        await store.jobs.finish(job)
        clock.advance(KEPT_SECONDS)
        await swept(store, clock)
        assert [job.kind for job in await store.jobs.latest(None)] == [KIND]

    asyncio.run(work())


async def first_attempt(worker: Worker) -> str:
    attempts: asyncio.Queue[Attempt] = asyncio.Queue()
    worker.told = attempts.put_nowait
    return (await asyncio.wait_for(attempts.get(), 30.0)).kind


def test_a_worker_beside_other_work_sweeps_by_itself(tmp_path: Path) -> None:
    async def work() -> None:
        store = await open_store(f"sqlite:///{tmp_path}/holdfast.db")
        async with background(store, Settings(), patience=0.0) as worker:
            assert worker is not None
            assert await first_attempt(worker) == KIND
        (job,) = await store.jobs.latest(None)
        assert job.state == "queued"
        assert job.next_attempt_at is not None
        await store.close()

    asyncio.run(work())


def test_the_library_has_a_worker_and_a_short_visit_never_touches_the_queue(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/holdfast.db"

    async def work() -> None:
        async with Holdfast.open(settings=Settings(store_url=url)) as engine:
            assert engine.parts.jobs is not None
        store = await open_store(url)
        assert await store.jobs.latest(None) == []
        await store.close()

    asyncio.run(work())


def test_a_worker_that_is_switched_off_does_nothing() -> None:
    async def work() -> None:
        store = open_memory()
        await store.jobs.enqueue(Scope(), [JOB])
        async with background(store, Settings(background_jobs=False), patience=0.0) as worker:
            assert worker is None
        (job,) = await store.jobs.latest(None)
        assert (job.state, job.attempts) == ("queued", 0)

    asyncio.run(work())
