"""What the settings say, as the options of the parts that obey them.

options: before holdfast. Parts know no settings: they are told how to do their work.
"""

from __future__ import annotations

from holdfast.assemble import AssembleOptions, HeaderParts
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions
from holdfast.jobs import asks_models
from holdfast.settings import Settings
from holdfast.tokens import ModelContextRegistry
from holdfast.workers import WorkLimits


def work_limits(settings: Settings) -> WorkLimits:
    """What reading large contents may take, as the settings say."""
    return WorkLimits(
        settings.worker_processes, settings.work_seconds, settings.work_memory_mb * 1_000_000
    )


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
        most_tokens=settings.cite_max_tokens,
        privacy=settings.privacy_policy,
        ttl_seconds=settings.content_ttl_seconds,
        policy=settings.cite_policy,
        tokens=settings.cite_tokens or None,
        share=settings.cite_share or None,
        tools=tuple(settings.cite_tools.items()),
        repeats=settings.cite_repeats,
    )
    return FitOptions(
        rules=rules,
        cites=settings.enable_content_citations,
        opens=True,
        opens_ahead=settings.open_ahead,
        offer_expand=settings.offer_expand,
        offer_inline=settings.offer_inline,
        summary_tokens=settings.summary_tokens_per_artifact if asks_models(settings) else 0,
        debug=settings.context_debug,
        registry=ModelContextRegistry(settings),
    )
