"""Say before a request is sent that it would break its budget, by how much, and what to do.

violations: after ledger, before report.
"""

from __future__ import annotations

import msgspec

from holdfast.budget.ledger import KINDS, Kind, TokenBudget
from holdfast.budget.usage import Usage
from holdfast.errors import BudgetExceededError


class BudgetViolation(msgspec.Struct, frozen=True):
    """A limit that a planned request would break."""

    kind: Kind
    limit: int
    used: int
    planned: int
    approximate: bool
    """Whether `used` holds estimates."""

    @property
    def over(self) -> int:
        """How many tokens are too many."""
        return self.used + self.planned - self.limit

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What would make it fit, the gentlest first."""
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
        """One sentence with the numbers."""
        about = "about " if self.approximate else ""
        return (
            f"the {self.kind} budget of {self.limit:,} tokens would be exceeded by {self.over:,}: "
            f"{about}{self.used:,} used, {self.planned:,} planned"
        )

    def error(self) -> BudgetExceededError:
        """The same as an error to raise."""
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
    """The first limit that the request would break, in the order input, output, total.

    What meets a limit exactly is within it.
    """
    tokens, answer = planned.input or 0, planned.output or 0
    for kind, more in zip(KINDS, (tokens, answer, tokens + answer), strict=True):
        side = budget.side(kind)
        if side.limit is not None and side.used + more > side.limit:
            return BudgetViolation(kind, side.limit, side.used, more, side.approximate)
    return None


def _tokens(number: int) -> str:
    return f"{number:,} token" if number == 1 else f"{number:,} tokens"
