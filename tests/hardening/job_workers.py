"""Workers of the queue that are killed and stopped: `python -m tests.hardening.job_workers`."""

from __future__ import annotations

import asyncio
import signal

from holdfast.jobs import Outcome, Worker, WorkerRules
from holdfast.store import Store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.queue import Job, Quotas
from holdfast.store.records import Summary
from holdfast.store.sqlite import SqliteStore
from tests.hardening.forking import bear, tell

KIND = "test"
CONNECTIONS = 4
"""Eight workers with a pool of the usual size would be more than the test's server takes."""


async def handle(job: Job) -> Outcome:
    """Make something of the job's own."""
    await asyncio.sleep(0.001)
    return Outcome(cost=min(job.most_cost, 1), summary=Summary(job.key, job.token.encode()))


async def opened(url: str) -> Store:
    if url.startswith("postgresql:"):
        return await PostgresStore.open(url, connections=CONNECTIONS)
    return await SqliteStore.open(url.removeprefix("sqlite:///"))


def worker(url: str, lease_seconds: float, slots: int) -> None:
    """Do jobs until a signal ends it."""

    async def work() -> None:
        store = await opened(url)
        rules = WorkerRules(
            slots=slots,
            lease_seconds=lease_seconds,
            idle_seconds=lease_seconds / 4,
            quotas=Quotas(session=10**9, day=10**9, artifact=10),
        )
        working = Worker(store.jobs, {KIND: handle}, rules)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.stop)
        tell(begun=True)
        await working.run()
        await store.close()

    asyncio.run(work())


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: they are watched
    bear({"worker": worker})
