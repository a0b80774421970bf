"""The final report of a task: what was given of it, and how often it was asked for.

reporting: after outcome and journal, before agent. A report is taken once; META may follow it.
"""

from __future__ import annotations

from typing import Any

from holdfast.agent.journal import Step
from holdfast.agent.outcome import Report
from holdfast.guard import FinalReport


class Reporting:
    """The report of the task that is being done."""

    def __init__(self, required_meta: frozenset[str]) -> None:
        self.required_meta = required_meta
        self.guidance_told = ""
        """What the model was told of its turn, and finds in the conversation."""
        self.told: set[str] = set()
        """Guidance that stands in the conversation: it is no question of the user's."""
        self.begin()

    def begin(self) -> None:
        """A new task: nothing was given yet."""
        self.state = FinalReport(required_meta=self.required_meta)
        self.text = ""
        self.meta: dict[str, Any] = {}
        self.asks = 0

    def ask_again(self) -> None:
        """The model gave nothing of what it was asked for, and is told once more."""
        self.asks += 1
        self.guidance_told = ""

    def take(self, given: Report) -> Step:
        """Take what a model reported; the step is to be written down."""
        if self.state.locked and not (self.state.missing_meta & set(given.meta)):
            self.ask_again()
        text = "" if self.state.captured else given.report.strip()
        if not text and not self.state.captured:
            self.ask_again()
        meta = {name: value for name, value in given.meta.items() if name in self.required_meta}
        step = Step(kind="report", text=text, meta=meta)
        self.replay(step)
        return step

    def replay(self, step: Step) -> None:
        """Take up a report that was written down."""
        self.text = self.text or step.text
        self.meta = step.meta | self.meta
        state = self.state.with_report() if step.text else self.state
        self.state = state.with_meta(*step.meta)
