"""jobs: the commands that list background jobs and run a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from holdfast.store import Scope, Store
from holdfast.store.queue import Job, QueueFigures

from ._context import OUTPUT, TENANT, CommandContext, shared_options
from ._groups import CommandGroup
from ._output import one_line, remark, table
from ._text import age
from .worker import worker

_DEEP = 100
"""With more jobs waiting than this, another worker helps."""


app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _jobs() -> None:
    """List background jobs, or run a worker that takes them from the queue.

    \b
    List them:     holdfast jobs list
    Find failures: holdfast jobs list --state failed
    Run a worker:  holdfast jobs worker
    """


@app.command("list")
@shared_options(*TENANT, *OUTPUT)
def list_jobs(
    context: CommandContext,
    kind: Annotated[str, typer.Option("--kind", help="List only jobs of this kind: sweep, …")] = "",
    state: Annotated[
        Literal["queued", "running", "done", "failed", "skipped"] | None,
        typer.Option("--state", help="List only jobs in this state."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of jobs.")] = 20,
) -> None:
    """List the jobs of the queue, most recently queued first.

    A failed or skipped job is tried again after the time in the column `next in`. The cost is in
    tokens, over all attempts. Finished jobs are removed after a week.

    \b
    Examples:
      holdfast jobs list
      holdfast jobs list --state failed
      holdfast jobs list --output json | jq '.jobs[] | select(.error != "")'
    """
    scope = Scope(context.scope.user, context.tenant) if context.tenant else None

    async def work(opened: Store) -> tuple[list[Job], QueueFigures]:
        newest = await opened.jobs.latest(scope, kind=kind, state=state or "", limit=limit)
        return newest, await opened.jobs.figures()

    newest, figures = context.run(work)

    def draw(console: Console) -> None:
        if not newest:
            remark("No jobs match.")
            return
        now = time.time()
        rows = [[cell(job, now) for cell in _COLUMNS.values()] for job in newest]
        console.print(table(*map(_column, _COLUMNS), rows=rows))
        waiting = sum(depth.jobs for depth in figures.depths if depth.waiting_seconds)
        if waiting > _DEEP:
            remark(f"Jobs waiting: {waiting:,}. `holdfast jobs worker` adds a worker.")

    data = {
        "jobs": [_built(job) for job in newest],
        "depths": msgspec.to_builtins(figures.depths),
        "cost_today": figures.cost_today,
    }
    context.emit(data, draw)


app.command()(worker)


def _built(job: Job) -> dict[str, object]:
    built: dict[str, object] = msgspec.to_builtins(job)
    del built["token"]
    return built


def _due(job: Job, now: float) -> str:
    if job.next_attempt_at is None:
        return "now" if job.state == "running" else ""
    return age(job.next_attempt_at - now) if job.next_attempt_at > now else "now"


def _column(name: str) -> Column:
    return Column(name, justify="right" if name in _NUMBERS else "left", no_wrap=name != "error")


_COLUMNS: dict[str, Callable[[Job, float], str | Text]] = {
    "id": lambda job, _: str(job.id),
    "kind": lambda job, _: job.kind,
    "state": lambda job, _: job.state,
    "tries": lambda job, _: str(job.attempts),
    "next in": _due,
    "age": lambda job, now: age(now - job.created_at),
    "cost": lambda job, _: f"{job.cost:,}",
    "error": lambda job, _: one_line(job.error),
}
_NUMBERS = ("id", "tries", "next in", "age", "cost")
