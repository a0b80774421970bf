"""What the settings say, as the options of the parts that obey them.

options: before holdfast. Parts know no settings: they are told how to do their work.
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
    """What reading large contents may take, as the settings say."""
    return WorkLimits(settings.worker_processes)


def assemble_options(settings: Settings) -> AssembleOptions:
    """How turns are assembled, as the settings say."""
    return AssembleOptions(
        header=HeaderParts(profile=settings.profile),
        lists_tools=settings.use_tool_directory,
        shows_facts=settings.enable_facts_ledger,
        shows_refs=settings.enable_cas_refs,
        tokens=settings.assemble_tokens,
        rules=fit_options(settings).rules,
    )


def fit_options(settings: Settings) -> FitOptions:
    """How requests are made to fit, as the settings say."""
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
