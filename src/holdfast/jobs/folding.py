"""Summaries of folded messages by a model, from the originals, for the next fold.

A digest is extracted at once, and no request waits for a model. A later summary is stored under a
key of the same messages, and quoted when the session folds again anyway (see trim/summaries.py);
until then, and permanently if the model fails, refuses or contradicts its source, the extracts are
used.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from holdfast.jobs.protocol import Outcome
from holdfast.jobs.summarising import ContentJob, asks_models
from holdfast.settings import Settings
from holdfast.store import Scope, Store, Stored, queue
from holdfast.store.queue import Job, NewJob
from holdfast.store.records import Summary
from holdfast.summarise import SummarizationResult
from holdfast.summarise.cache import cache_key
from holdfast.summarise.levels import Place
from holdfast.summarise.support import shared_words
from holdfast.trim.provenance import Sentence, Told
from holdfast.trim.summaries import transcript
from holdfast.wire import DIALECTS, Message
from holdfast.wire.strict import parse

KIND = "fold"
_MOST_LOOKED_FOR = 8
"""Maximum number of waiting parts of a session that are looked up with each request, the latest
ones: without a worker their number grows."""
_BETWEEN = "\n\n"
"""Between messages, so that each begins a paragraph: places of sentences are paragraphs."""
_LINES = re.compile(r"lines (\d+)-(\d+)")


class MessageSummary(msgspec.Struct, frozen=True):
    """A model's summary of messages, and the result of its check."""

    sentences: tuple[Sentence, ...]
    model: str
    checked: int
    unsupported: int
    """Sentences that were dropped: the messages do not bear them out."""


class FoldSummaries:
    """Queues summaries of folded messages, and finds finished ones."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    async def ask(self, scope: Scope, dialect: str, refs: Sequence[str]) -> None:
        """Queue new parts: the same messages are summarised once, for any number of folds."""
        most = queue.SUMMARY_TOKENS
        jobs = [
            NewJob(kind=KIND, key=self._key(dialect, ref), ref_id=ref, most_cost=most)
            for ref in refs
        ]
        await self._store.jobs.enqueue(scope, jobs)

    async def ready(self, scope: Scope, dialect: str, refs: Sequence[str]) -> Told:
        """Return the finished summaries, by the refs of their messages."""
        summaries = {}
        for ref in refs[-_MOST_LOOKED_FOR:]:
            summary = await self._store.summary(scope, self._key(dialect, ref))
            if summary is not None:
                summaries[ref] = msgspec.json.decode(summary, type=MessageSummary).sentences
        return summaries

    def _key(self, dialect: str, ref: str) -> str:
        """A name for the messages, and for all else that a summary of them depends on (X06)."""
        settings = self._settings
        models = (settings.summarization_provider, *settings.summarization_providers)
        budget = queue.SUMMARY_TOKENS
        how = cache_key(ref, *models, settings.summarization_prompt_version, budget)
        return f"{dialect}:{how}"


def fold_summaries(store: Store, settings: Settings) -> FoldSummaries | None:
    """Return the queue of summaries; None if no model is configured."""
    return FoldSummaries(store, settings) if asks_models(settings) else None


class FoldSummariser(ContentJob):
    """The job that summarises folded messages."""

    async def _outcome(self, job: Job, stored: Stored) -> Outcome:
        texts = transcript(messages_in(stored.data, job.key.partition(":")[0]))
        result, cost = await self._summarize(job, stored, _BETWEEN.join(texts))
        if not result.provider:
            return Outcome(skipped="the messages are too short to be summarised")
        telling = MessageSummary(
            sentences_of(result, texts), result.model, result.checked, result.unsupported
        )
        summary = Summary(job.key, msgspec.json.encode(telling), stored.info.sha256)
        return Outcome(cost=cost, summary=summary)


def messages_in(data: bytes, dialect_name: str) -> list[Message]:
    """Folded messages, as they were stored: a JSON list."""
    dialect = DIALECTS[dialect_name]
    messages = []
    for number, span in enumerate(msgspec.json.decode(data, type=list[msgspec.Raw])):
        value = parse(bytes(span), (number,))
        messages.append(Message(bytes(span), dialect.check(value, (number,)), dialect, value))
    return messages


def sentences_of(result: SummarizationResult, texts: Sequence[str]) -> tuple[Sentence, ...]:
    """The sentences of a summary, each with the messages whose lines bear it out."""
    line_ends = (text.count("\n") + _BETWEEN.count("\n") for text in texts)
    firsts = list(accumulate(line_ends, initial=1))[:-1]

    def sentence(place: Place) -> Sentence:
        lines = _LINES.fullmatch(place.where)
        first, last = map(int, lines.groups()) if lines else (1, firsts[-1])
        text = result.text[place.start : place.stop].strip()
        around = range(bisect_right(firsts, first) - 1, bisect_right(firsts, last))
        return Sentence(text, *_borne_out(text, texts, around))

    return tuple(map(sentence, result.places))


def _borne_out(sentence: str, texts: Sequence[str], around: range) -> tuple[int, int]:
    """Return the first and last of the messages around a position that best support a sentence.

    Short messages share a paragraph: otherwise a question would be credited with its answer.
    """
    shares = {number: shared_words(sentence, texts[number]) for number in around}
    best = [number for number, share in shares.items() if share == max(shares.values())]
    return best[0], best[-1]
