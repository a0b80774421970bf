"""The values of a budget: limits, usage, and the violation that a request would cause.

The manager keeps them current.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.budget.usage import Usage
from holdfast.errors import BudgetExceededError

Kind = Literal["input", "output", "total"]
KINDS: tuple[Kind, ...] = ("input", "output", "total")


class Allowance(msgspec.Struct, frozen=True):
    """The limit and usage of one side of a budget."""

    limit: int | None = None
    """Maximum tokens; None means unlimited, and 0 allows none."""
    used: int = 0
    approximate: bool = False
    """Whether `used` contains an estimate or a request without a report."""

    @property
    def remaining(self) -> int | None:
        """Return the remaining tokens, never below zero; None without a limit."""
        return None if self.limit is None else max(self.limit - self.used, 0)

    @property
    def percent(self) -> int | None:
        """Return the used percent, over 100 if exceeded; None without a limit."""
        if self.limit is None:
            return None
        return self.used * 100 // self.limit if self.limit else 100


class Overhead(msgspec.Struct, frozen=True):
    """Input tokens that were not conversation, as far as they were counted."""

    system_messages: int = 0
    tool_definitions: int = 0
    formatting: int = 0


class TokenBudget(msgspec.Struct, frozen=True):
    """The limits and usage of all requests of a session."""

    input: Allowance = Allowance()
    output: Allowance = Allowance()
    total: Allowance = Allowance()
    overhead: Overhead = Overhead()

    def side(self, kind: Kind) -> Allowance:
        """Return the allowance of a side."""
        sides = {"input": self.input, "output": self.output, "total": self.total}
        return sides[kind]


class BudgetViolation(msgspec.Struct, frozen=True):
    """A limit that a planned request would exceed."""

    kind: Kind
    limit: int
    used: int
    planned: int
    approximate: bool
    """Whether `used` contains estimates."""

    @property
    def over(self) -> int:
        """Return the number of excess tokens."""
        return self.used + self.planned - self.limit

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Return possible remedies, least intrusive first."""
        least = self.used + self.planned
        raising = f'Raise the limit: set_limit("{self.kind}", {least}).'
        if self.over >= self.planned:
            return ("Nothing is left of it: end the session, or begin a new one.", raising)
        return (self._shorter(), raising)

    def _shorter(self) -> str:
        if self.kind == "output":
            return f"Ask for an answer of at most {_tokens(self.planned - self.over)}."
        if self.kind == "input":
            return f"Trim the request by at least {_tokens(self.over)}."
        return f"Make the request or its answer {_tokens(self.over)} shorter."

    def describe(self) -> str:
        """Return one sentence with the numbers."""
        about = "about " if self.approximate else ""
        return (
            f"the {self.kind} budget of {self.limit:,} tokens would be exceeded by {self.over:,}: "
            f"{about}{self.used:,} used, {self.planned:,} planned"
        )

    def error(self) -> BudgetExceededError:
        """Return the violation as an error to raise."""
        return BudgetExceededError(
            self.describe(),
            where=f"budget.{self.kind}",
            fix=" ".join(self.suggestions),
            kind=self.kind,
            limit=self.limit,
            used=self.used,
            planned=self.planned,
        )


def find_violation(budget: TokenBudget, planned: Usage) -> BudgetViolation | None:
    """Return the first limit that the request would exceed, in the order input, output, total.

    Usage equal to a limit is allowed.
    """
    tokens, answer = planned.input or 0, planned.output or 0
    for kind, more in zip(KINDS, (tokens, answer, tokens + answer), strict=True):
        side = budget.side(kind)
        if side.limit is not None and side.used + more > side.limit:
            return BudgetViolation(kind, side.limit, side.used, more, side.approximate)
    return None


def _tokens(number: int) -> str:
    return f"{number:,} token" if number == 1 else f"{number:,} tokens"
