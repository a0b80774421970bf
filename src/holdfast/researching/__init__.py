"""Research: a question and any number of sources → a report that quotes, and can be checked again.

records → walking · fetching · searching · similar; passages → reading → gathering; index → ranking;
places → finding; report → markdown · html_page → composing; saving → verifying · forgetting;
prompts → asking → agents → synthesising; planning; options; conducting runs them in order.
"""

from holdfast.researching.conducting import conduct, research
from holdfast.researching.forgetting import Forgotten, forget
from holdfast.researching.gathering import SourceLimits, SourceText
from holdfast.researching.html_page import html_page
from holdfast.researching.markdown import markdown
from holdfast.researching.options import Options, PhaseProgress, Progress, Researched
from holdfast.researching.records import Finding, Quote, ResearchState, SourceEntry
from holdfast.researching.report import Report
from holdfast.researching.verifying import Verified, verify

__all__ = [
    "Finding",
    "Forgotten",
    "Options",
    "PhaseProgress",
    "Progress",
    "Quote",
    "Report",
    "ResearchState",
    "Researched",
    "SourceEntry",
    "SourceLimits",
    "SourceText",
    "Verified",
    "conduct",
    "forget",
    "html_page",
    "markdown",
    "research",
    "verify",
]
