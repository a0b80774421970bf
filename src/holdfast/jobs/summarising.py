"""Summaries of stored contents by a model, once a content is read often enough.

Until then, and without a configured model, the extract from the content's arrival is used. A
summary costs about as much as it saves in two or three readings, so a content is summarised when
it is opened for the second time. The MCP gateway lists stored contents by their summaries: there a
content is summarised when it arrives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from holdfast.errors import StoreError
from holdfast.jobs.protocol import Outcome
from holdfast.models.opening import EXTRACTIVE
from holdfast.models.protocol import CompletionModel
from holdfast.settings import Settings
from holdfast.store import RefInfo, Scope, Store, Stored, queue
from holdfast.store.queue import Job, NewJob
from holdfast.store.rules import MOST_SUMMARY_CHARACTERS
from holdfast.summarise import ContentSummarizer, SummarizationLevel, SummarizationResult

KIND = "summarise"
OPENINGS = 2
"""So often a content was opened when it is summarised, where nothing else reads its summary."""
LEAST_TOKENS = 500
"""Of a content, for a summary to save anything (004-75)."""


def asks_models(settings: Settings) -> bool:
    """Whether the settings name any model that summaries are asked of."""
    named = {settings.summarization_provider, *settings.summarization_providers}
    return bool(named - {"", EXTRACTIVE})


def should_summarize(info: RefInfo) -> bool:
    """Whether a summary of a content could save anything: it is there, and long enough."""
    return info.state == "fresh" and info.tokens >= LEAST_TOKENS


def job_of(info: RefInfo) -> NewJob:
    """Return the job to summarise a content: one per content."""
    most = queue.SUMMARY_TOKENS
    return NewJob(kind=KIND, key=info.sha256, ref_id=info.ref_id, most_cost=most)


class SummaryQueue:
    """Queues summaries of contents that are worth it; never raises for its caller."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def opened(self, scope: Scope, info: RefInfo) -> None:
        """A content was opened; the second time, it is one that is opened again."""
        if info.accesses == OPENINGS:
            await self.listed(scope, info)

    async def listed(self, scope: Scope, info: RefInfo) -> None:
        """A content was stored where its summary is shown from now on (004-54)."""
        if should_summarize(info):
            with suppress(StoreError):
                await self._store.jobs.enqueue(scope, [job_of(info)])


def summary_queue(store: Store, settings: Settings) -> SummaryQueue | None:
    """Return the queue of summaries; None if no model is configured."""
    return SummaryQueue(store) if asks_models(settings) else None


class ContentJob(ABC):
    """A job that has models summarise one stored content; subclasses make its outcome."""

    def __init__(
        self, store: Store, settings: Settings, models: Sequence[CompletionModel] | None = None
    ) -> None:
        self._store = store
        # The store has extracts of the content already, so only a model's own words help.
        self._settings = msgspec.structs.replace(settings, summarization_extractive=False)
        self._models = models

    async def __call__(self, job: Job) -> Outcome:
        """Summarise the content of a job; its outcome is stored together with the job's end."""
        stored = await self._store.get(job.scope.of(""), job.ref_id, peek=True)
        if stored is None:
            return Outcome(skipped="the content is gone")
        return await self._outcome(job, stored)

    @abstractmethod
    async def _outcome(self, job: Job, stored: Stored) -> Outcome:
        """Return the outcome of a job on a content that is stored."""

    async def _summarize(
        self, job: Job, stored: Stored, text: str
    ) -> tuple[SummarizationResult, int]:
        """Return the summary of a text made from a content, and the tokens it cost."""
        cache = SummariesOfContent(self._store, job.scope, stored.info.sha256)
        summarizer = ContentSummarizer(self._settings, self._models, cache)
        result = await summarizer.summarize(
            text, SummarizationLevel.HEADLINE, target_budget=job.most_cost
        )
        return result, 0 if result.cached else result.tokens_to


class Summariser(ContentJob):
    """The job that replaces the extract of a content by a model's summary."""

    async def _outcome(self, job: Job, stored: Stored) -> Outcome:
        text = stored.data.decode("utf-8", "replace")
        result, cost = await self._summarize(job, stored, text)
        return Outcome(cost=cost, gist=result.text[:MOST_SUMMARY_CHARACTERS])


class SummariesOfContent:
    """Summaries of one content, in the store: they go with it."""

    def __init__(self, store: Store, scope: Scope, source: str) -> None:
        self._store = store
        self._scope = scope
        self._source = source

    async def get(self, key: str) -> bytes | None:
        """See `SummaryCache`."""
        return await self._store.summary(self._scope, key)

    async def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """See `SummaryCache`."""
        await self._store.put_summary(self._scope, key, value, ttl, source=self._source)
