"""The budget: what a check, a report of usage and a snapshot cost, however long the session is."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.measure import best_ms
from holdfast.budget import PhaseBudget, TokenBudgetManager, Usage

TARGET_MS = 0.1
CALLS = 1000
"""Calls in one run, so that the clock's own time does not count."""


def run(console: Console) -> None:
    """Print the table."""
    table = Table(title=f"Budget, ms for one call (target: a check in {TARGET_MS} ms)")
    for column in ("requests before", "check", "reserve + report", "snapshot", "report as text"):
        table.add_column(column, justify="right")
    for number in (0, 1000, 100_000):
        measured = _measured(number)
        table.add_row(f"{number:,}", *(f"{ms:.4f}" for ms in measured))
        for name, ms in zip(("check", "turn", "snapshot", "report"), measured, strict=True):
            ratios.note_ms(f"budget: {name} after {number:,}", ms)
    console.print(table)
    phase = PhaseBudget(10**8, 16_384, 0.1)
    each = best_ms(lambda: [phase.allocate(1) for _ in range(CALLS)]) / CALLS
    console.print(f"PhaseBudget.allocate: {each:.4f} ms")


def _measured(number: int) -> tuple[float, ...]:
    manager = TokenBudgetManager(input_limit=10**12, output_limit=10**12, total_limit=10**12)
    for request in range(number):
        manager.track_usage(f"openai:model-{request % 20}", Usage(1000, 100), f"r{request}")
    planned = Usage(12_000, 1000)
    usage = {"input_tokens": 10, "cache_read_input_tokens": 11_000, "output_tokens": 600}

    def turn() -> None:
        manager.reserve("claude:opus", planned, "again")
        manager.track_usage("claude:opus", usage, "again")

    steps = (
        lambda: manager.check_violation(planned),
        turn,
        manager.snapshot,
        lambda: manager.report().text(),
    )
    return tuple(best_ms(lambda s=s: [s() for _ in range(CALLS)]) / CALLS for s in steps)  # type: ignore[misc]
