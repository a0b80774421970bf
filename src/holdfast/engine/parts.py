"""The parts that the engines of all scopes of one store share.

parts: before sessions and holdfast. A new feature adds a field here and its value in `parts_of`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from holdfast.answer_cache import AnswerPolicy
from holdfast.assemble import AssembleOptions
from holdfast.engine.live import LiveSessions
from holdfast.engine.options import assemble_options, fit_options
from holdfast.facts import FactIndexCache
from holdfast.fitting import FitOptions
from holdfast.jobs import FoldSummaries, SummaryQueue, Worker, fold_summaries, summary_queue
from holdfast.memory import ArrayCache
from holdfast.models.embedding import open_embedder, recall_embedder, tool_embedder
from holdfast.models.protocol import Embedder
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.workers import Workers, WorkLimits


@dataclass(frozen=True, kw_only=True)
class EngineParts:
    """The parts shared by the engines of one store, whatever scope they have."""

    store: Store
    options: FitOptions = field(default_factory=lambda: FitOptions(cites=True, opens=True))
    """How requests are fitted, unless a call gives other options."""
    clock: Callable[[], float] = time.time
    workers: Workers = field(default_factory=lambda: Workers(WorkLimits(processes=0)))
    """The processes that read large contents; without any, this process does."""
    answer_policy: AnswerPolicy | None = None
    """When an answer may be given again."""
    titles: bool = True
    """Whether the first question of a session becomes its title."""
    learns: bool = False
    """Whether facts are extracted from cited contents."""
    reading: Settings | None = None
    """Settings of the model that extracts facts from results in the background; None for none."""
    summary_queue: SummaryQueue | None = None
    """Queues summaries of contents that are opened repeatedly; None without a model."""
    summaries: FoldSummaries | None = None
    """Queues summaries of folded messages; None without a model."""
    jobs: Worker | None = None
    """Runs the queued jobs in this process; None if another process does."""
    assembling: AssembleOptions = field(default_factory=AssembleOptions)
    """Options of the first assembler."""
    embedder: Embedder | None = field(default_factory=open_embedder)
    """Embeds turns for recall; None to compare words only."""
    tool_embedder: Embedder | None = field(default_factory=open_embedder)
    """Embeds tools for their search; None to compare words only."""
    live: LiveSessions = field(default_factory=LiveSessions)
    """Sessions in memory; one memory bound covers all scopes."""
    arrays: ArrayCache = field(default_factory=ArrayCache)
    """Search arrays of the scopes that recall used last."""

    @cached_property
    def indexes(self) -> FactIndexCache:
        """The search indexes of facts."""
        return FactIndexCache(self.store, open_embedder())


def parts_of(
    settings: Settings,
    store: Store,
    *,
    clock: Callable[[], float],
    workers: Workers,
    jobs: Worker | None,
    reads_facts: bool,
) -> EngineParts:
    """Return the parts that the settings ask for."""
    return EngineParts(
        store=store,
        options=fit_options(settings),
        clock=clock,
        workers=workers,
        answer_policy=AnswerPolicy.of(settings),
        titles=settings.session_titles,
        learns=settings.enable_facts_ledger,
        reading=settings if reads_facts else None,
        summary_queue=summary_queue(store, settings),
        summaries=fold_summaries(store, settings),
        jobs=jobs,
        assembling=assemble_options(settings),
        embedder=recall_embedder(settings),
        tool_embedder=tool_embedder(settings),
    )
