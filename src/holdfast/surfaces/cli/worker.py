"""worker: do the jobs of the queue, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Annotated

import typer

from holdfast.errors import StoreError
from holdfast.facts import fact_jobs
from holdfast.jobs import Attempt, worker_of
from holdfast.jobs.running import begin
from holdfast.settings import Settings
from holdfast.store import Store

from ._output import remark
from ._store import StoreOption, with_store


def worker(
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=256, help="Jobs that are done at once.")
    ] = 4,
    store: StoreOption = None,
) -> None:
    """Do the jobs of the queue, beside any number of others.

    The proxy and the library do them too, unless background_jobs is off. Workers may share a file,
    or on PostgreSQL be on many machines. A signal to end (SIGTERM, Ctrl-C) makes a worker hand back
    what it is at; what a killed one was at is done by another within a minute.

    \b
    Examples:
      holdfast worker
      holdfast worker --store postgresql://me@db/holdfast --slots 16
    """
    from holdfast.surfaces.proxy import logs  # noqa: PLC0415 - other commands start faster

    settings = Settings.load(store_url=store)
    if settings.store_url.partition(":")[0].lower() == "memory":
        raise StoreError(
            "a store in memory has no jobs that another process could do",
            where="store_url",
            fix="Name the store that the proxy uses: --store sqlite:///path or postgresql://…",
        )
    logs.configure(settings.log_format, debug=settings.context_debug)

    def told(attempt: Attempt) -> None:
        logs.log.info(
            logs.Fields(
                event="job",
                kind=attempt.kind,
                state=attempt.state,
                cost=attempt.cost,
                error=attempt.error,
                ms=round(attempt.seconds * 1000, 1),
            )
        )

    async def work(opened: Store) -> None:
        more = fact_jobs(opened, settings)
        working = worker_of(opened, settings, slots=slots, more=more)
        working.told = told
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # on Windows, Ctrl-C ends the loop
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, working.stop)
        await begin(opened)
        remark(f"Holdfast works on the jobs of {opened.url} (Ctrl-C ends it)")
        await working.run()

    with_store(settings, work, creates=True)
