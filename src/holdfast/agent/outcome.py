"""How a run ended, and the tool that a model ends it with.

outcome: beside tools. Representations hold sizes, never text.

The final report of a task: what was given of it, and how often it was asked for. A report is taken
once; META may follow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from holdfast.agent.journal import Step
from holdfast.guard import FinalReport
from holdfast.guard.final_turn import FINAL_REPORT_TOOL

Ending = Literal["answered", "reported", "forced", "quoted"]
"""The model answered; it gave its report; it was made to; or, where no model could be asked any
more, the offline model quoted what the conversation holds."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent came to."""

    text: str
    """The answer, or the final report."""
    ending: Ending
    meta: dict[str, Any] = {}
    missing_meta: tuple[str, ...] = ()
    """META that the model was asked for and did not give."""
    why: str = ""
    """Why the end was forced; empty if it was not."""
    turns: int = 0
    """Answers of models that it took."""
    input_tokens: int = 0
    output_tokens: int = 0
    session: str = ""

    @property
    def complete(self) -> bool:
        """Whether the model ended by itself, with all that was asked for."""
        return self.ending in ("answered", "reported") and not self.missing_meta

    def __repr__(self) -> str:
        return f"<Outcome {self.ending}, {len(self.text)} characters, {self.turns} turns>"


class Report(msgspec.Struct, frozen=True):
    """The arguments of the final report."""

    report: str = ""
    meta: dict[str, Any] = {}


def report_definition(required_meta: Iterable[str]) -> dict[str, Any]:
    """The tool that ends a run, with the META that is asked for."""
    names = sorted(required_meta)
    properties: dict[str, Any] = {
        "report": {"type": "string", "description": "Your final report, complete by itself."}
    }
    if names:
        properties["meta"] = {
            "type": "object",
            "description": "What must come with the report.",
            "properties": {name: {} for name in names},
            "required": names,
        }
    function = {
        "name": FINAL_REPORT_TOOL,
        "description": "Ends the task with your final report. Call it once, when you are done.",
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": ["report", *(["meta"] if names else [])],
        },
    }
    return {"type": "function", "function": function}


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
