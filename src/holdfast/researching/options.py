"""How a research is done, how far it is, and what it came to: the values around a run.

options: after gathering and report, before conducting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.models.opening import EXTRACTIVE
from holdfast.models.protocol import CompletionModel
from holdfast.researching.gathering import SourceLimits
from holdfast.researching.records import ResearchState
from holdfast.researching.report import Report

_REPORT_TOKENS = 8_000
"""Tokens of a report, unless another number is given."""


class PhaseProgress(NamedTuple):
    """How far a research is."""

    phase: str
    done: int
    total: int
    tokens: int
    """Used so far, of models."""
    source: str = ""
    """What was looked at last, while sources are gathered."""


Progress = Callable[[PhaseProgress], None]


class Options(NamedTuple):
    """How a research is done."""

    budget: int | None = None
    """Without a model: the most tokens of the report. With one: of all its prompts and answers."""
    model: str | CompletionModel | None = None
    report_tokens: int | None = None
    """The most tokens of the report; without a model, the budget."""
    limits: SourceLimits = SourceLimits()
    resume: bool = False
    discard: bool = False
    """Whether sources that only this run uses may go an hour after its report was made."""
    stdin: str = ""
    now: float | None = None
    """When it is; None: the clock's time."""
    progress: Progress = lambda _: None

    @property
    def model_name(self) -> str:
        """Who is asked; empty if nobody is."""
        if self.model is None or self.model == EXTRACTIVE:
            return ""
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def most_of_report(self) -> int:
        """The most tokens of the report."""
        if self.report_tokens is not None:
            return self.report_tokens
        return self.budget if self.budget and not self.model_name else _REPORT_TOKENS


class Researched(NamedTuple):
    """What a research came to."""

    report: Report
    state: ResearchState
