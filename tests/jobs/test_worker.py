"""A worker: outcomes and errors, lost leases, an unavailable store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.errors import ProviderError, StoreUnavailableError
from holdfast.jobs import Attempt, Handler, Outcome, Worker, WorkerRules
from holdfast.jobs.worker import delay_after
from holdfast.store import Scope
from holdfast.store.opening import open_memory
from holdfast.store.operations.jobs import SqlJobQueue
from holdfast.store.protocol import Store
from holdfast.store.queue import AttemptEnd, Claim, Job, NewJob, Quotas
from holdfast.store.records import Summary
from tests.store.harness import Clock

HERE = Scope("ann", "blue", "s1")
QUICK = WorkerRules(slots=2, lease_seconds=60.0, idle_seconds=0.01)


class Bench:
    """A worker over a store in memory, whose attempts can be waited for."""

    def __init__(self, store: Store, worker: Worker) -> None:
        self.store = store
        self.worker = worker
        self.attempts: asyncio.Queue[Attempt] = asyncio.Queue()
        worker.told = self.attempts.put_nowait

    async def ended(self) -> Attempt:
        return await asyncio.wait_for(self.attempts.get(), 30.0)

    async def job(self) -> Job:
        (job,) = await self.store.jobs.latest(None)
        return job


@asynccontextmanager
async def working(
    handler: Handler, rules: WorkerRules = QUICK, clock: Clock | None = None, **job: Any
) -> AsyncIterator[Bench]:
    store = open_memory(clock=clock or Clock())
    bench = Bench(store, Worker(store.jobs, {"x": handler}, rules))
    await store.jobs.enqueue(HERE, [NewJob(**{"kind": "x", "key": "k"} | job)])
    running = asyncio.create_task(bench.worker.run())
    try:
        yield bench
    finally:
        bench.worker.stop()
        await asyncio.wait_for(running, 30.0)


def answers(outcome: Outcome) -> Handler:
    async def handler(_: Job) -> Outcome:
        return outcome

    return handler


def raises(error: BaseException) -> Handler:
    async def handler(_: Job) -> Outcome:
        raise error

    return handler


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()
        await asyncio.sleep(0)  # the cancelled task ends in this step
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, "a worker that has ended leaves no task behind"

    asyncio.run(main())


def test_what_a_job_made_is_kept_and_its_cost_counted() -> None:
    async def work() -> None:
        outcome = Outcome(cost=40, summary=Summary("sum", b"short"))
        async with working(answers(outcome), most_cost=100) as bench:
            attempt = await bench.ended()
            assert (attempt.kind, attempt.state, attempt.cost) == ("x", "done", 40)
            assert (await bench.job()).state == "done"
            assert await bench.store.summary(HERE, "sum") == b"short"
            assert (await bench.store.jobs.figures()).cost_today == 40

    run(work)


def test_a_job_with_nothing_to_do_is_skipped_with_its_reason() -> None:
    async def work() -> None:
        async with working(answers(Outcome(skipped="the content is gone"))) as bench:
            assert (await bench.ended()).state == "skipped"
            job = await bench.job()
            assert (job.error, job.next_attempt_at) == ("the content is gone", None)

    run(work)


def test_a_failure_is_tried_again_later_and_told_without_content() -> None:
    secret = "what the user said"

    async def work() -> None:
        async with working(raises(ValueError(secret)), most_cost=100) as bench:
            attempt = await bench.ended()
            job = await bench.job()
            assert (attempt.state, job.state, job.attempts) == ("failed", "failed", 1)
            assert job.next_attempt_at is not None
            assert secret not in job.error
            assert job.error.startswith("ValueError at test_worker.py:")
            assert job.cost == 100  # its cost before the failure is unknown

    run(work)


def test_our_own_errors_are_told_in_their_words_and_the_last_attempt_is_the_end() -> None:
    async def work() -> None:
        error = ProviderError("the provider timed out", where="nowhere")
        async with working(raises(error), max_attempts=1) as bench:
            await bench.ended()
            job = await bench.job()
            assert job.error == "ProviderError: the provider timed out"
            assert (job.state, job.next_attempt_at) == ("failed", None)

    run(work)


def test_a_provider_that_says_when_to_come_again_is_obeyed() -> None:
    async def work() -> None:
        error = ProviderError("too many requests")
        error.retry_after = 1234.0  # type: ignore[attr-defined]
        clock = Clock()
        async with working(raises(error), clock=clock) as bench:
            await bench.ended()
            assert (await bench.job()).next_attempt_at == clock.now + 1234.0

    run(work)


@pytest.mark.parametrize("asked", [1e39, float("inf"), 10.0**300])
def test_a_provider_that_says_never_is_asked_again_tomorrow(asked: float) -> None:
    async def work() -> None:
        error = ProviderError("too many requests")
        error.retry_after = asked  # type: ignore[attr-defined]
        clock = Clock()
        async with working(raises(error), clock=clock) as bench:
            await bench.ended()
            assert (await bench.job()).next_attempt_at == clock.now + 86_400.0

    run(work)


class Odd(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize(
    "error", [SystemExit(3), GeneratorExit(), Odd("secret"), asyncio.CancelledError("secret")]
)
def test_whatever_a_handler_raises_is_a_failed_attempt_and_the_worker_goes_on(
    error: BaseException,
) -> None:
    async def work() -> None:
        async with working(raises(error), max_attempts=2) as bench:
            assert (await bench.ended()).state == "failed"
            job = await bench.job()
            assert (job.state, job.attempts) == ("failed", 1)
            assert job.error.startswith(f"{type(error).__name__} at test_worker.py:")
            await bench.store.jobs.enqueue(HERE, [NewJob(kind="x", key="next")])
            assert (await bench.ended()).state == "failed"

    run(work)


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(Outcome(gist="x" * 501), "StoreError: the summary"), (None, "AttributeError at worker.py:")],
)
def test_an_outcome_that_cannot_be_written_down_is_a_failed_attempt(
    outcome: Outcome, error: str
) -> None:
    async def work() -> None:
        async with working(answers(outcome)) as bench:
            assert (await bench.ended()).state == "failed"
            job = await bench.job()
            assert (job.state, job.attempts) == ("failed", 1)
            assert job.error.startswith(error)

    run(work)


def test_delays_grow_to_an_hour_and_are_spread() -> None:
    delays = [delay_after(attempts) for attempts in range(1, 40)]
    assert delays[:4] == [10.0, 40.0, 160.0, 640.0]
    assert delays == sorted(delays)
    assert delays[-1] == 3600.0
    assert len({delay_after(1, id_) for id_ in range(100)}) == 16


def test_a_worker_that_is_stopped_hands_its_jobs_back_untried() -> None:
    async def work() -> None:
        begun = asyncio.Event()

        async def endless(_: Job) -> Outcome:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        async with working(endless) as bench:
            await asyncio.wait_for(begun.wait(), 30.0)
        job = await bench.job()
        assert (job.state, job.attempts) == ("queued", 0)

    run(work)


def test_a_worker_that_is_stopped_while_it_writes_down_what_it_did_does_so_first() -> None:
    async def work() -> None:
        store = open_memory(clock=Clock())
        writing, go_on = asyncio.Event(), asyncio.Event()
        settle = store.jobs.settle

        async def slowly(job: Job, ending: AttemptEnd) -> bool:
            writing.set()
            await go_on.wait()
            return await settle(job, ending)

        store.jobs.settle = slowly  # type: ignore[method-assign]
        worker = Worker(store.jobs, {"x": answers(Outcome())}, QUICK)
        await store.jobs.enqueue(HERE, [NewJob(kind="x", key="k")])
        running = asyncio.create_task(worker.run())
        await asyncio.wait_for(writing.wait(), 30.0)
        worker.stop()
        asyncio.get_running_loop().call_soon(go_on.set)
        await asyncio.wait_for(running, 30.0)
        assert [job.state for job in await store.jobs.latest(None)] == ["done"]

    run(work)


def test_a_job_that_was_lost_to_another_is_cut_off_and_changes_nothing() -> None:
    async def work() -> None:
        clock, begun = Clock(), asyncio.Event()

        async def endless(_: Job) -> Outcome:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        # A lease so short that the next beat is at once, by a clock that is set by hand.
        rules = WorkerRules(slots=1, lease_seconds=0.03, idle_seconds=60.0)
        async with working(endless, rules, clock) as bench:
            await asyncio.wait_for(begun.wait(), 30.0)
            clock.advance(1.0)
            (other,) = await bench.store.jobs.claim(Claim(kinds=("x",)))
            attempt = await bench.ended()
            assert attempt.state == "running"
            assert await bench.store.jobs.finish(other)

    run(work)


def test_quotas_are_the_workers_rules() -> None:
    async def work() -> None:
        rules = WorkerRules(quotas=Quotas(artifact=10), idle_seconds=0.01)
        async with working(answers(Outcome()), rules, most_cost=11) as bench:
            await bench.store.jobs.enqueue(HERE, [NewJob(kind="x", key="free")])
            await bench.ended()
            jobs = {job.key: job.error for job in await bench.store.jobs.latest(None)}
            assert jobs == {"k": "quota_exceeded: artifact", "free": ""}

    run(work)


def test_what_was_done_while_the_store_is_away_is_written_down_when_it_is_back() -> None:
    async def work() -> None:
        store = open_memory(clock=Clock())
        settle, away = store.jobs.settle, [3]

        async def often_away(job: Job, ending: AttemptEnd) -> bool:
            if away[0]:
                away[0] -= 1
                raise StoreUnavailableError("the store is away")
            return await settle(job, ending)

        store.jobs.settle = often_away  # type: ignore[method-assign]
        times = 0

        async def once(_: Job) -> Outcome:
            nonlocal times
            times += 1
            return Outcome()

        bench = Bench(store, Worker(store.jobs, {"x": once}, QUICK))
        await store.jobs.enqueue(HERE, [NewJob(kind="x", key="k")])
        running = asyncio.create_task(bench.worker.run())
        assert (await bench.ended()).state == "done"
        bench.worker.stop()
        await running
        assert times == 1

    run(work)


def test_a_store_that_cannot_be_claimed_from_is_asked_again() -> None:
    async def work() -> None:
        store = open_memory(clock=Clock())
        claiming, away = store.jobs.claim, [2]

        async def often_away(claim: Claim) -> list[Job]:
            if away[0]:
                away[0] -= 1
                raise StoreUnavailableError("the store is away")
            return await claiming(claim)

        store.jobs.claim = often_away  # type: ignore[method-assign]
        bench = Bench(store, Worker(store.jobs, {"x": answers(Outcome())}, QUICK))
        await store.jobs.enqueue(HERE, [NewJob(kind="x", key="k")])
        running = asyncio.create_task(bench.worker.run())
        assert (await bench.ended()).state == "done"
        assert not bench.worker.store_fails
        bench.worker.stop()
        await running

    run(work)


@pytest.mark.parametrize("kinds", [("a", "b"), ("b", "a")])
def test_no_kind_waits_behind_another_for_ever(kinds: tuple[str, str]) -> None:
    async def work() -> None:
        store = open_memory(clock=Clock())
        order: list[str] = []

        async def note(job: Job) -> Outcome:
            order.append(job.kind)
            return Outcome()

        bench = Bench(store, Worker(store.jobs, dict.fromkeys(kinds, note), WorkerRules(slots=1)))
        jobs = [NewJob(kind=kind, key=str(n)) for kind in kinds for n in range(4)]
        await store.jobs.enqueue(HERE, jobs)
        running = asyncio.create_task(bench.worker.run())
        for _ in jobs:
            await bench.ended()
        bench.worker.stop()
        await running
        assert set(order[:2]) == {"a", "b"}

    run(work)


def test_a_worker_with_nothing_left_to_do_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that has ended and is not forgotten would end every pause at once."""
    claims: list[Claim] = []
    claim = SqlJobQueue.claim

    async def counted(queue: SqlJobQueue, wanted: Claim) -> list[Job]:
        claims.append(wanted)
        return await claim(queue, wanted)

    monkeypatch.setattr(SqlJobQueue, "claim", counted)

    async def main() -> None:
        async with working(answers(Outcome()), WorkerRules(idle_seconds=3_600)) as bench:
            await bench.ended()
            for _ in range(500):
                await asyncio.sleep(0)
            assert len(claims) <= 3  # the job, nothing more, and once more after it ended

    asyncio.run(main())
