"""jobs: what the background has to do, does and has done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.queue import Job, QueueFigures

from ._output import ColorOption, Output, OutputOption, one_line, remark, table
from ._store import DEFAULT, StoreOption, TenantOption, UserOption, with_store
from ._text import age

_DEEP = 100
"""Jobs that wait (004-58): with more, a worker more is of use."""


def jobs(
    kind: Annotated[str, typer.Option("--kind", help="Only jobs of this kind: sweep, …")] = "",
    state: Annotated[
        Literal["queued", "running", "done", "failed", "skipped"] | None,
        typer.Option("--state", help="Only jobs in this state."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 20,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    tenant: TenantOption = "",
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List the jobs of the queue, those queued last first.

    A job that failed or was skipped is done again at its next attempt, if there is one. Cost is in
    tokens, over all attempts. Jobs that are over are forgotten after a week.

    \b
    Examples:
      holdfast jobs
      holdfast jobs --state failed
      holdfast jobs --output json | jq '.jobs[] | select(.error != "")'
    """
    settings = Settings.load(output=output, color=color, store_url=store)
    scope = Scope(user, tenant) if tenant else None

    async def work(opened: Store) -> tuple[list[Job], QueueFigures]:
        newest = await opened.jobs.latest(scope, kind=kind, state=state or "", limit=limit)
        return newest, await opened.jobs.figures()

    newest, figures = with_store(settings, work)

    def draw(console: Console) -> None:
        if not newest:
            remark("There are no such jobs.")
            return
        now = time.time()
        rows = [[cell(job, now) for cell in _COLUMNS.values()] for job in newest]
        console.print(table(*map(_column, _COLUMNS), rows=rows))
        waiting = sum(depth.jobs for depth in figures.depths if depth.waiting_seconds)
        if waiting > _DEEP:
            remark(f"{waiting:,} jobs are due: `holdfast worker` helps to do them.")

    data = {
        "jobs": [_built(job) for job in newest],
        "depths": msgspec.to_builtins(figures.depths),
        "cost_today": figures.cost_today,
    }
    Output(settings).emit(data, draw)


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
