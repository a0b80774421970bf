"""Background jobs in which a model reads long results for facts, if the settings name a model.

The rules do not read prose. The model is asked for key points that can be understood alone. A key
point is stored only if the source supports it (see `summarise`) and it needs no context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from holdfast.errors import PrivacyError
from holdfast.facts.extraction import FactCandidate
from holdfast.facts.index_cache import FactIndexCache
from holdfast.facts.ledger import Ledger
from holdfast.facts.pronouns import is_self_contained
from holdfast.jobs.protocol import Handler, Outcome
from holdfast.jobs.summarising import asks_models
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import CompletionModel
from holdfast.settings import Settings
from holdfast.store import Content, Scope, Store, queue
from holdfast.store.fact_store import MOST_CHARACTERS, MOST_NAME_CHARACTERS, NewFact
from holdfast.store.queue import Job, NewJob
from holdfast.summarise import ContentSummarizer, SummarizationLevel, SummarizationResult

KIND = "facts"
LEAST_TOKENS = 500
"""Minimum tokens of a result for which a model is called."""
_LEAST_WORDS = 4
_PURPOSE = "who did what and when, decisions, preferences, numbers with units, ids and what is due"


def fact_job(content: Content) -> NewJob:
    """Return the job that reads a result: one per content, even if it is stored several times."""
    most = queue.SUMMARY_TOKENS
    return NewJob(kind=KIND, key=content.sha256, ref_id=content.ref_id, priority=3, most_cost=most)


def is_long_enough(content: Content) -> bool:
    """Return whether a result is long enough for a model to read it."""
    return content.tokens >= LEAST_TOKENS


def fact_jobs(store: Store, settings: Settings) -> dict[str, Handler]:
    """Return the handlers by kind of job; none if no model is named or facts are disabled."""
    if not (settings.enable_facts_ledger and asks_models(settings)):
        return {}
    indexes = FactIndexCache(store, open_embedder())
    ledger = Ledger(store, Scope(), indexes, privacy=settings.privacy_policy)
    return {KIND: FactReader(store, settings, ledger)}


class FactReader:
    """Runs the jobs that read results for facts."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        ledger: Ledger,
        models: Sequence[CompletionModel] | None = None,
    ) -> None:
        self._store = store
        # Instead of a model's words, extractive summaries would repeat what the rules have read
        # already.
        self._settings = msgspec.structs.replace(settings, summarization_extractive=False)
        self._ledger = ledger
        self._models = models

    async def __call__(self, job: Job) -> Outcome:
        """Read a result. A job that runs twice finds the same facts and merges their sources."""
        stored = await self._store.get(job.scope.of(""), job.ref_id, peek=True)
        if stored is None:
            return Outcome(skipped="the content is gone")
        # The summarizer has no store: the facts are the only output, and they are deleted with the
        # content.
        summarizer = ContentSummarizer(self._settings, self._models)
        result = await summarizer.summarize(
            stored.data.decode("utf-8", "replace"),
            SummarizationLevel.KEY_POINTS,
            _PURPOSE,
            target_budget=job.most_cost,
        )
        tool = stored.info.meta.get("tool", "")
        facts = list(self._facts(job, result, (tool,) if tool else ()))
        if facts:
            await self._store.facts.add(job.scope, facts)
        return Outcome(cost=result.tokens_to)

    def _facts(
        self, job: Job, result: SummarizationResult, tags: tuple[str, ...]
    ) -> Iterator[NewFact]:
        for place in result.places:
            text = result.text[place.start : place.stop].strip().lstrip("-*• ")
            words = text.lower().split()
            is_whole = len(words) >= _LEAST_WORDS and len(text) <= MOST_CHARACTERS
            if is_whole and text.isprintable() and is_self_contained(text, words):
                where = place.where[:MOST_NAME_CHARACTERS]
                candidate = FactCandidate(text, "fact", job.ref_id, where, tags=tags)
                with suppress(PrivacyError):  # a secret is not stored
                    yield self._ledger.new(candidate, job.scope.session)
