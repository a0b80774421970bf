"""The limits of a run: the context window, the budget and the number of turns.

Each of them leads to a final turn, in which the model is asked to finish.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.agent.journal import Transcript
from holdfast.agent.outcome import ReportProgress
from holdfast.budget import TokenBudgetManager, Usage
from holdfast.guard import ContextGuard


class Bounds:
    """Decides whether the next turn is the final one, and why. The guard checks the window."""

    def __init__(self, guard: ContextGuard, budget: TokenBudgetManager, max_turns: int) -> None:
        self.turns = 0
        """Number of model answers so far."""
        self.why = ""
        """Why the end is forced; empty if it is not."""
        self._guard = guard
        self._budget = budget
        self._max_turns = max_turns
        self._last_output = 0
        self._is_last_of_budget = False

    @property
    def is_final(self) -> bool:
        """Return whether the next turn is the final one."""
        is_forced = self._guard.forced_final_turn_reason is not None
        return is_forced or self._is_last_of_budget or self.turns >= self._max_turns

    def begin(self) -> None:
        """Begin a new task: the budget may have been raised since the last one."""
        if self._is_last_of_budget:
            self._is_last_of_budget, self.why = False, ""

    def count_turn(self, output_tokens: int) -> None:
        """Count a turn."""
        self.turns += 1
        self._last_output = output_tokens

    def look_ahead(self, output_tokens: int) -> None:
        """Make the next turn final if the budget cannot cover another one after it.

        So the model itself ends the run while it can still be called. The answer is expected to be
        as long as the last one, but the next request reserves the maximum, `output_tokens`.
        """
        turns = Usage(2 * self._guard.counters.projected, self._last_output + output_tokens)
        if self._budget.check_violation(turns) is not None:
            self._is_last_of_budget = True
            self.why = self.why or "budget"


class RunParts(NamedTuple):
    """The parts of a run that its steps share."""

    guard: ContextGuard
    transcript: Transcript
    report: ReportProgress
    bounds: Bounds
