"""The guard: what a check costs, beside adding up the same numbers in plain Python."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.measure import best_ms
from holdfast.guard import ContextGuard, TargetContextConfig

TARGET_MS = 0.1
ROUNDS = 1000


def run(console: Console) -> None:
    """Print the table."""
    table = Table(title=f"One check of the guard, in microseconds (target: {TARGET_MS * 1000:.0f})")
    for column in ("", "targets", "µs", "plain sum, µs", "times the sum", "of the target"):
        table.add_column(column, justify="left" if not column else "right")
    for targets in (1, 3, 10):
        guard = ContextGuard(
            [TargetContextConfig("openai", f"gpt-4o-{n}", 128_000) for n in range(targets)],
            current_tokens=50_000,
            estimate=len,
        )
        guard.set_schema(2_000)
        over = ContextGuard(guard.targets, current_tokens=500_000, estimate=len)
        numbers = [50_000, 0, 0, 2_000]
        limits = [target.limit for target in guard.targets]
        plain = _microseconds(lambda n=numbers, m=limits: [sum(n) > limit for limit in m])  # type: ignore[misc]
        checks: dict[str, Callable[[], object]] = {
            "evaluate": guard.evaluate,
            "evaluate, all blocked": over.evaluate,
            "evaluate_for": lambda g=guard: g.evaluate_for("openai", "gpt-4o-0"),  # type: ignore[misc]
            "reserve_tool_output": lambda g=guard: g.reserve_tool_output(""),  # type: ignore[misc]
        }
        for name, check in checks.items():
            took = _microseconds(check)
            ratios.note(f"guard: {name}, {targets} targets, a plain sum", plain, took)
            table.add_row(
                name,
                str(targets),
                f"{took:.2f}",
                f"{plain:.2f}",
                f"{took / plain:.1f}",
                f"{took / TARGET_MS / 10:.1f} %",
            )
    console.print(table)
    console.print("An output is counted before it is reserved; that is the tokenizer's time.\n")


def _microseconds(check: Callable[[], object]) -> float:
    def many() -> None:
        for _ in range(ROUNDS):
            check()

    return best_ms(many) * 1000 / ROUNDS
