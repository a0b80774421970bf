"""The ledger: what may be used, what was, and what is left.

ledger: after usage, before violations. Values only; the manager keeps them current.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["input", "output", "total"]
KINDS: tuple[Kind, ...] = ("input", "output", "total")


class Allowance(msgspec.Struct, frozen=True):
    """One side of a budget."""

    limit: int | None = None
    """Most tokens that may be used; None: as many as it takes. 0 allows none."""
    used: int = 0
    approximate: bool = False
    """Whether anything in `used` is an estimate, or was never reported."""

    @property
    def remaining(self) -> int | None:
        """What is left, never below zero; None without a limit."""
        return None if self.limit is None else max(self.limit - self.used, 0)

    @property
    def percent(self) -> int | None:
        """Whole percents used, more than 100 if it was exceeded; None without a limit."""
        if self.limit is None:
            return None
        return self.used * 100 // self.limit if self.limit else 100


class Overhead(msgspec.Struct, frozen=True):
    """How much of the input was not conversation, as far as it was counted."""

    system_messages: int = 0
    tool_definitions: int = 0
    formatting: int = 0


class TokenBudget(msgspec.Struct, frozen=True):
    """A budget over all requests of a session: limits, and what was used of them."""

    input: Allowance = Allowance()
    output: Allowance = Allowance()
    total: Allowance = Allowance()
    overhead: Overhead = Overhead()

    def side(self, kind: Kind) -> Allowance:
        """The allowance of that name."""
        sides = {"input": self.input, "output": self.output, "total": self.total}
        return sides[kind]
