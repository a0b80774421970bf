"""What a run is held by: its guard, its conversation, its report, and the bounds that end it.

bounds: after targets, before asking and calling. The window, the budget and the number of turns
each lead to a final turn, in which the model is told to come to an end.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.agent.journal import Transcript
from holdfast.agent.outcome import Reporting
from holdfast.budget import TokenBudgetManager, Usage
from holdfast.guard import ContextGuard


class Bounds:
    """Whether the next turn is the last one, and why; of the window the guard knows."""

    def __init__(self, guard: ContextGuard, budget: TokenBudgetManager, max_turns: int) -> None:
        self.turns = 0
        """Answers of models so far."""
        self.why = ""
        """Why the end is forced; empty while it is not."""
        self._guard = guard
        self._budget = budget
        self._max_turns = max_turns
        self._last_output = 0
        self._is_last_of_budget = False

    @property
    def is_final(self) -> bool:
        """Whether the next turn is the last one."""
        is_forced = self._guard.forced_final_turn_reason is not None
        return is_forced or self._is_last_of_budget or self.turns >= self._max_turns

    def begin(self) -> None:
        """A new task: since the last one, the budget may have been raised."""
        if self._is_last_of_budget:
            self._is_last_of_budget, self.why = False, ""

    def answered(self, output_tokens: int) -> None:
        """Count a turn."""
        self.turns += 1
        self._last_output = output_tokens

    def look_ahead(self, output_tokens: int) -> None:
        """Make the next turn the last one if the budget has no room for another behind it (001-74).

        So a model ends the run with its own words, while it can still be asked. An answer is
        expected to be as long as the last one was, but room is asked for as the next request will:
        for the longest, `output_tokens`.
        """
        turns = Usage(2 * self._guard.counters.projected, self._last_output + output_tokens)
        if self._budget.check_violation(turns) is not None:
            self._is_last_of_budget = True
            self.why = self.why or "budget"


class Run(NamedTuple):
    """What all that happens in a run looks at."""

    guard: ContextGuard
    transcript: Transcript
    report: Reporting
    bounds: Bounds
