"""Workers of the queue that are killed and stopped: `python -m tests.hardening.job_workers`."""

from __future__ import annotations

import asyncio
import signal

from holdfast.jobs import Outcome, Worker, WorkerRules
from holdfast.store import open_store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.queue import Job, Quotas
from holdfast.store.records import Summary
from holdfast.store.sqlite import SqliteStore
from tests.hardening.forking import bear, tell

KIND = "test"
STORES = (PostgresStore, SqliteStore)
"""Imported only when they are opened, and so by each child again, if not here."""


async def handle(job: Job) -> Outcome:
    """Make something of the job's own."""
    await asyncio.sleep(0.001)
    return Outcome(cost=min(job.most_cost, 1), summary=Summary(job.key, job.token.encode()))


def worker(url: str, lease_seconds: float, slots: int) -> None:
    """Do jobs until a signal ends it."""

    async def work() -> None:
        store = await open_store(url)
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
