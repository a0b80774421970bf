"""What a client did so far: its budget, how well counts were, and what strategies saved.

report: after replies, before client. Numbers and names only, never text of a conversation.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.budget import TokenBudgetReport
from holdfast.tokens.calibration import Accuracy
from holdfast.trim import Effect


class ClientReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a client at one moment."""

    model: str
    session: str
    budget: TokenBudgetReport
    accuracy: tuple[Accuracy, ...]
    """How far counts were from what providers reported, by model (001-32)."""
    effects: tuple[Effect, ...]
    """What each strategy did in this process (001-10)."""

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            "model": self.model,
            "session": self.session,
            **self.budget.data(),
            "accuracy": msgspec.to_builtins(self.accuracy),
            "effects": msgspec.to_builtins(self.effects),
        }

    def text(self) -> str:
        """The report in lines for a person."""
        lines = [f"{self.model}, session {self.session}", self.budget.text()]
        lines += [
            f"counts of {each.model}: {each.observed:,} reported, "
            f"off by {100 * each.corrected_error:.1f}% (median)"
            for each in self.accuracy
        ]
        lines += [
            f"strategy {each.strategy}: {each.runs:,} runs, {each.reached:,} reached, "
            f"{each.failed:,} failed, {each.tokens_saved:,} tokens saved"
            + (f"; lost anchors: {', '.join(each.lost)}" if each.lost else "")
            for each in self.effects
        ]
        return "\n".join(lines) + "\n"
