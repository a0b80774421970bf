"""Immutable views of a budget for people and programs."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.budget.ledger import KINDS, Allowance, TokenBudget


class LimitSummary(msgspec.Struct, frozen=True):
    """A summary of one limit."""

    used: int
    limit: int | None
    """Maximum tokens; None means unlimited."""
    warnings: tuple[str, ...] = ()


class ProviderUsage(msgspec.Struct, frozen=True):
    """The usage of one provider's requests."""

    provider: str
    requests: int
    input: int
    output: int
    approximate: bool


class TokenBudgetSnapshot(msgspec.Struct, frozen=True):
    """The budget at one moment."""

    number: int
    """Number of earlier changes; a later snapshot has a larger number."""
    budget: TokenBudget
    providers: tuple[ProviderUsage, ...]
    """Largest first."""
    refused: int
    """Number of invalid usage reports, which were not counted."""


class TokenBudgetReport(msgspec.Struct, frozen=True):
    """A snapshot with its warnings."""

    snapshot: TokenBudgetSnapshot
    warnings: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        budget = self.snapshot.budget
        sides = {kind: _side(budget.side(kind)) for kind in KINDS}
        return {
            "budget": {**sides, "overhead": msgspec.to_builtins(budget.overhead)},
            "providers": msgspec.to_builtins(self.snapshot.providers),
            "refused": self.snapshot.refused,
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text; `~` marks approximate numbers."""
        budget = self.snapshot.budget
        lines = [_row("", "used", "limit", "left", "percent")]
        lines += [_line(kind, budget.side(kind)) for kind in KINDS]
        overhead = budget.overhead
        lines += [
            "",
            f"counted in the input: system {overhead.system_messages:,}, "
            f"tools {overhead.tool_definitions:,}, formatting {overhead.formatting:,}",
        ]
        lines += [_provider(usage) for usage in self.snapshot.providers]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines) + "\n"


def warnings_of(snapshot: TokenBudgetSnapshot, warn_percent: float) -> tuple[str, ...]:
    """Return warnings for limits nearly or fully used and for invalid reports."""
    warnings = [
        warning
        for kind in KINDS
        if (warning := side_warning(kind, snapshot.budget.side(kind), warn_percent))
    ]
    if snapshot.refused:
        reports = "report" if snapshot.refused == 1 else "reports"
        warnings.append(f"{snapshot.refused:,} {reports} of usage made no sense and did not count")
    return tuple(warnings)


def side_warning(kind: str, side: Allowance, warn_percent: float) -> str:
    """Return the warning for one limit; empty if there is none."""
    if side.limit is None or side.used * 100 < side.limit * warn_percent:
        return ""
    if side.used > side.limit:
        over = side.used - side.limit
        return f"{kind} is over its limit of {side.limit:,} tokens by {over:,}"
    if side.used == side.limit:
        return f"{kind} is used up: all of {side.limit:,} tokens"
    return f"{kind} is {side.percent}% used: {side.remaining:,} of {side.limit:,} tokens are left"


def _side(side: Allowance) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(side)
    return {**plain, "remaining": side.remaining, "percent": side.percent}


def _line(kind: str, side: Allowance) -> str:
    used = f"{'~' if side.approximate else ''}{side.used:,}"
    if side.limit is None:
        return _row(kind, used, "none", "", "")
    return _row(kind, used, f"{side.limit:,}", f"{side.remaining:,}", f"{side.percent}%")


def _row(*cells: str) -> str:
    first, *other_cells = cells
    return (f"{first:<8}" + "".join(f"{cell:>14}" for cell in other_cells)).rstrip()


def _provider(usage: ProviderUsage) -> str:
    requests = "request" if usage.requests == 1 else "requests"
    trust = "approximate" if usage.approximate else "exact"
    return (
        f"{usage.provider}: {usage.requests:,} {requests}, "
        f"{usage.input:,} in, {usage.output:,} out, {trust}"
    )
