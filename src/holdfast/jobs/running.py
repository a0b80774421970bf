"""A worker with all its handlers, as configured; in an engine, or standalone.

A program that ends within moments stops before the first poll of the queue, and pays nothing for
it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from holdfast.errors import StoreError
from holdfast.jobs import folding, summarising, sweeping
from holdfast.jobs.protocol import Handler
from holdfast.jobs.worker import Worker, WorkerRules
from holdfast.settings import Settings
from holdfast.store import Scope, Store, queue
from holdfast.store.queue import IDLE_SECONDS, Quotas


def worker_of(
    store: Store,
    settings: Settings,
    *,
    slots: int = 4,
    clock: Callable[[], float] = time.time,
    more: Mapping[str, Handler] | None = None,
) -> Worker:
    """A worker for everything that the settings allow, and what more is given."""
    by_kind = handlers(store, settings, clock) | dict(more or {})
    return Worker(store.jobs, by_kind, rules_of(settings, slots))


def handlers(
    store: Store, settings: Settings, clock: Callable[[], float] = time.time
) -> dict[str, Handler]:
    """Return the handlers, by the kind of job."""
    by_kind: dict[str, Handler] = {sweeping.KIND: sweeping.Sweeper(store, settings, clock)}
    if summarising.asks_models(settings):
        by_kind[summarising.KIND] = summarising.Summariser(store, settings)
        by_kind[folding.KIND] = folding.FoldSummariser(store, settings)
    return by_kind


def rules_of(settings: Settings, slots: int) -> WorkerRules:
    """Return the rules of a worker, from the settings."""
    return WorkerRules(
        slots=slots,
        quotas=Quotas(day=settings.summary_tokens_per_day, artifact=queue.SUMMARY_TOKENS),
    )


async def begin(store: Store) -> None:
    """Queue the recurring jobs; each is in the queue once, however many workers call this."""
    await store.jobs.enqueue(Scope(), [sweeping.JOB])


@asynccontextmanager
async def background(
    store: Store,
    settings: Settings,
    *,
    clock: Callable[[], float] = time.time,
    patience: float = IDLE_SECONDS,
    more: Mapping[str, Handler] | None = None,
) -> AsyncIterator[Worker | None]:
    """A worker beside other work, unless it is switched off; in the end it hands its jobs back."""
    if not settings.background_jobs:
        yield None
        return
    worker = worker_of(store, settings, clock=clock, more=more)
    running = asyncio.create_task(_run(worker, store, patience))
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.gather(running, return_exceptions=True)


async def _run(worker: Worker, store: Store, patience: float) -> None:
    if await worker.stopped(patience):
        return
    with suppress(StoreError):  # the next worker queues it
        await begin(store)
    await worker.run()
