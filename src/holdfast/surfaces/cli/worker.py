"""worker: the command that runs background jobs until it is stopped."""

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
from holdfast.store import Store

from ._context import STORE, CommandContext, shared_options
from ._output import remark


@shared_options(*STORE)
def worker(
    context: CommandContext,
    slots: Annotated[
        int,
        typer.Option("--slots", min=1, max=256, help="Number of jobs that run at the same time."),
    ] = 4,
) -> None:
    """Run a worker that takes jobs from the queue until it is stopped.

    The proxy and the library run jobs too, unless the setting background_jobs is off. Any number of
    workers may share a SQLite file on one machine, or a PostgreSQL database from many. On SIGTERM
    or Ctrl-C a worker returns its unfinished jobs to the queue; the jobs of a killed worker are
    taken over within a minute.

    \b
    Examples:
      holdfast jobs worker
      holdfast jobs worker --store postgresql://me@db/holdfast --slots 16
    """
    from holdfast.surfaces.proxy import logs  # noqa: PLC0415 - other commands start faster

    settings = context.settings
    if settings.store_url.partition(":")[0].lower() == "memory":
        raise StoreError(
            "no other process can see the jobs of a store in memory",
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
        remark(f"Holdfast runs the jobs of {opened.url} (press Ctrl-C to stop)")
        await working.run()

    context.run(work, creates=True)
