"""Options, progress and result of a research run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.models.opening import EXTRACTIVE
from holdfast.models.protocol import CompletionModel
from holdfast.researching.records import ResearchState
from holdfast.researching.report import Report
from holdfast.researching.sources import SourceLimits

_REPORT_TOKENS = 8_000
"""Default maximum tokens of a report."""


class PhaseProgress(NamedTuple):
    """Progress of a run."""

    phase: str
    done: int
    total: int
    tokens: int
    """Tokens used by models so far."""
    source: str = ""
    """The source that was read last, during gathering."""


Progress = Callable[[PhaseProgress], None]


class Options(NamedTuple):
    """Options of a run."""

    budget: int | None = None
    """Without a model the maximum tokens of the report; with one, of all prompts and answers."""
    model: str | CompletionModel | None = None
    report_tokens: int | None = None
    """Maximum tokens of the report; without a model, the budget."""
    limits: SourceLimits = SourceLimits()
    resume: bool = False
    discard: bool = False
    """Whether sources that only this run uses may be deleted an hour after the report."""
    stdin: str = ""
    now: float | None = None
    """The current time; None for the clock."""
    progress: Progress = lambda _: None

    @property
    def model_name(self) -> str:
        """Return the name of the model; empty for a run without one."""
        if self.model is None or self.model == EXTRACTIVE:
            return ""
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def most_of_report(self) -> int:
        """Return the maximum tokens of the report."""
        if self.report_tokens is not None:
            return self.report_tokens
        return self.budget if self.budget and not self.model_name else _REPORT_TOKENS


class ResearchResult(NamedTuple):
    """The result of a run."""

    report: Report
    state: ResearchState
