"""reading: a model reads a long result for facts, in the background, where the settings name one.

reading: after ledger. What the rules find in a result is there at once; prose they do not read. A
model is asked for its key points, each understandable by itself, and what the source does not bear
out is left out (see summarise/): what is left is kept if it stands on its own, with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from holdfast.errors import PrivacyError
from holdfast.facts.extracting import Candidate
from holdfast.facts.indexes import Indexes
from holdfast.facts.ledger import Ledger
from holdfast.facts.pronouns import stands_alone
from holdfast.jobs.protocol import Handler, Outcome
from holdfast.jobs.summarising import asks_models
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import CompletionModel
from holdfast.settings import Settings
from holdfast.store import Content, Scope, Store, queue
from holdfast.store.fact_shelf import MOST_CHARACTERS, MOST_NAME_CHARACTERS, NewFact
from holdfast.store.queue import Job, NewJob
from holdfast.summarise import ContentSummarizer, SummarizationLevel, SummarizationResult

KIND = "facts"
LEAST_TOKENS = 500
"""Of a result that a model is asked about (004-75)."""
_LEAST_WORDS = 4
_PURPOSE = "who did what and when, decisions, preferences, numbers with units, ids and what is due"


def job_of(content: Content) -> NewJob:
    """The job of reading a result: one for each content, whoever stored it."""
    most = queue.SUMMARY_TOKENS
    return NewJob(kind=KIND, key=content.sha256, ref_id=content.ref_id, priority=3, most_cost=most)


def reads(content: Content) -> bool:
    """Whether there is enough in a result for a model to read it."""
    return content.tokens >= LEAST_TOKENS


def fact_jobs(store: Store, settings: Settings) -> dict[str, Handler]:
    """Who reads results, by the kind of job; nobody where no model is named or facts are off."""
    if not (settings.enable_facts_ledger and asks_models(settings)):
        return {}
    indexes = Indexes(store, open_embedder())
    ledger = Ledger(store, Scope(), indexes, privacy=settings.privacy_policy)
    return {KIND: FactReader(store, settings, ledger)}


class FactReader:
    """Does the job of reading."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        ledger: Ledger,
        models: Sequence[CompletionModel] | None = None,
    ) -> None:
        self._store = store
        # Quotations in the place of a model's words are what the rules have read already.
        self._settings = msgspec.structs.replace(settings, summarization_extractive=False)
        self._ledger = ledger
        self._models = models

    async def __call__(self, job: Job) -> Outcome:
        """Have a result read; done again, it finds the same facts and their sources."""
        stored = await self._store.get(job.scope.of(""), job.ref_id, peek=True)
        if stored is None:
            return Outcome(skipped="the content is gone")
        # Nothing is kept of what was said beside the facts: they go with their content.
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
            if is_whole and text.isprintable() and stands_alone(text, words):
                where = place.where[:MOST_NAME_CHARACTERS]
                candidate = Candidate(text, "fact", job.ref_id, where, tags=tags)
                with suppress(PrivacyError):  # a secret is no fact
                    yield self._ledger.new(candidate, job.scope.session)
