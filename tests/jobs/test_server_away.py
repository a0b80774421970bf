"""PostgreSQL fails while a worker runs a job: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.jobs import Attempt, Outcome, Worker, WorkerRules
from holdfast.store import Scope, open_store
from holdfast.store.queue import Job, NewJob
from tests.store.postgres_server import Server


@pytest.mark.slow
def test_a_job_that_was_done_while_the_server_was_gone_is_written_down_once(
    postgres_server: Server, postgres_url: str
) -> None:
    async def work() -> None:
        store = await open_store(postgres_url)
        attempts: asyncio.Queue[Attempt] = asyncio.Queue()
        seen: list[str] = []

        async def handle(job: Job) -> Outcome:
            seen.append(job.key)
            if job.key == "first":
                postgres_server.kill()
                asyncio.get_running_loop().call_later(0.1, postgres_server.start)
            return Outcome(cost=1)

        rules = WorkerRules(slots=1, idle_seconds=0.05)
        worker = Worker(store.jobs, {"x": handle}, rules, told=attempts.put_nowait)
        jobs = [NewJob(kind="x", key=key, most_cost=9) for key in ("first", "second")]
        await store.jobs.enqueue(Scope().of("s"), jobs)
        running = asyncio.create_task(worker.run())
        ends = [await asyncio.wait_for(attempts.get(), 60.0) for _ in jobs]
        worker.stop()
        await running
        assert [attempt.state for attempt in ends] == ["done", "done"]
        assert seen == ["first", "second"]
        assert set((await store.jobs.spent(Scope())).values()) == {2}
        await store.close()

    asyncio.run(work())
