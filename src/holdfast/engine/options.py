"""Turn the settings into the options of the parts.

options: before parts. The pure parts know no settings, only options.
"""

from __future__ import annotations

from holdfast.assemble import AssembleOptions, HeaderParts
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions
from holdfast.jobs import asks_models
from holdfast.settings import Settings
from holdfast.store import queue
from holdfast.tokens import ModelContextRegistry
from holdfast.workers import WorkLimits


def work_limits(settings: Settings) -> WorkLimits:
    """Return the limits for reading large contents."""
    return WorkLimits(settings.worker_processes)


def assemble_options(settings: Settings) -> AssembleOptions:
    """Return the options for assembling turns."""
    return AssembleOptions(
        header=HeaderParts(profile=settings.profile),
        lists_tools=settings.use_tool_directory,
        shows_facts=settings.enable_facts_ledger,
        shows_refs=settings.enable_cas_refs,
        tokens=settings.assemble_tokens,
        rules=fit_options(settings).rules,
    )


def fit_options(settings: Settings) -> FitOptions:
    """Return the options for fitting requests."""
    rules = CitingRules(
        threshold=settings.cite_threshold,
        privacy=settings.privacy_policy,
        ttl_seconds=settings.content_ttl_seconds,
        policy=settings.cite_policy,
        tools=tuple(settings.cite_tools.items()),
    )
    return FitOptions(
        rules=rules,
        cites=settings.enable_content_citations,
        opens=True,
        opens_ahead=settings.open_ahead,
        offer_expand="auto" if settings.offer_expand == "inline" else settings.offer_expand,
        offer_inline="always" if settings.offer_expand == "inline" else "auto",
        summary_tokens=queue.SUMMARY_TOKENS if asks_models(settings) else 0,
        debug=settings.context_debug,
        registry=ModelContextRegistry(settings),
    )
