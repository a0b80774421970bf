"""Research: answer a question from many sources in a report with verifiable quotations."""

from holdfast.researching.html_page import html_page
from holdfast.researching.markdown import markdown
from holdfast.researching.options import Options, PhaseProgress, Progress, ResearchResult
from holdfast.researching.records import Finding, Quote, ResearchState, SourceEntry
from holdfast.researching.report import Report
from holdfast.researching.research_run import conduct, research
from holdfast.researching.run_deletion import ForgetResult, forget
from holdfast.researching.sources import SourceLimits, SourceText
from holdfast.researching.verification import VerificationResult, verify

__all__ = [
    "Finding",
    "ForgetResult",
    "Options",
    "PhaseProgress",
    "Progress",
    "Quote",
    "Report",
    "ResearchResult",
    "ResearchState",
    "SourceEntry",
    "SourceLimits",
    "SourceText",
    "VerificationResult",
    "conduct",
    "forget",
    "html_page",
    "markdown",
    "research",
    "verify",
]
