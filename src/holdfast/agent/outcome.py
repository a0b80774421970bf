"""How a run ended, and the tool with which a model ends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from holdfast.agent.journal import JournalStep
from holdfast.guard import FinalReport
from holdfast.guard.final_turn import FINAL_REPORT_TOOL

AttemptEnd = Literal["answered", "reported", "forced", "quoted"]
"""The model answered; it called the report tool; it was forced to; or, if no model could be called
any more, the offline model quoted the conversation."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    text: str
    """The answer or the final report."""
    ending: AttemptEnd
    meta: dict[str, Any] = {}
    missing_meta: tuple[str, ...] = ()
    """META that was required and not given."""
    why: str = ""
    """Why the end was forced; empty if it was not."""
    turns: int = 0
    """Number of model answers."""
    input_tokens: int = 0
    output_tokens: int = 0
    session: str = ""

    @property
    def complete(self) -> bool:
        """Return whether the model ended by itself with everything that was required."""
        return self.ending in ("answered", "reported") and not self.missing_meta

    def __repr__(self) -> str:
        return f"<Outcome {self.ending}, {len(self.text)} characters, {self.turns} turns>"


class ReportArguments(msgspec.Struct, frozen=True):
    """The arguments of the final report tool."""

    report: str = ""
    meta: dict[str, Any] = {}


def report_definition(required_meta: Iterable[str]) -> dict[str, Any]:
    """Return the tool that ends a run, with the required META."""
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


class ReportProgress:
    """The report of the current task, its META, and the number of times it was asked for."""

    def __init__(self, required_meta: frozenset[str]) -> None:
        self.required_meta = required_meta
        self.current_guidance = ""
        """The guidance for the current turn, which is in the conversation already."""
        self.guidance: set[str] = set()
        """All guidance in the conversation, which is not a user's question."""
        self.begin()

    def begin(self) -> None:
        """Begin a new task."""
        self.state = FinalReport(required_meta=self.required_meta)
        self.text = ""
        self.meta: dict[str, Any] = {}
        self.asks = 0

    def ask_again(self) -> None:
        """Count a failed request for the report; the guidance is added again."""
        self.asks += 1
        self.current_guidance = ""

    def take(self, arguments: ReportArguments) -> JournalStep:
        """Take a model's report once, or META that follows it; return the step to write."""
        if self.state.locked and not (self.state.missing_meta & set(arguments.meta)):
            self.ask_again()
        text = "" if self.state.captured else arguments.report.strip()
        if not text and not self.state.captured:
            self.ask_again()
        meta = {name: value for name, value in arguments.meta.items() if name in self.required_meta}
        step = JournalStep(kind="report", text=text, meta=meta)
        self.replay(step)
        return step

    def replay(self, step: JournalStep) -> None:
        """Apply a report from the journal."""
        self.text = self.text or step.text
        self.meta = step.meta | self.meta
        state = self.state.with_report() if step.text else self.state
        self.state = state.with_meta(*step.meta)
