"""Folded messages are summarised from their originals; each sentence knows whose it is."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from holdfast.jobs.folding import FoldSummaries, FoldSummariser, MessageSummary, messages_in
from holdfast.store import Scope, queue
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store
from holdfast.store.queue import Claim, Job
from holdfast.store.records import Summary
from holdfast.trim.pieces import listed
from holdfast.trim.summaries import transcript
from holdfast.wire import read
from tests.engine.summed_up import LIE, QUOTAS, SETTINGS, Model
from tests.fitting.test_citing import chat, in_dialect
from tests.store.harness import content
from tests.surfaces.proxy.harness import DIALECTS

HERE = Scope("ann", "blue", "s")
REPORTS = [f"Pump {n} was checked at {n + 7} bar by Ada." for n in range(30)]


def talk() -> dict[str, Any]:
    body = chat(*REPORTS[:9], question="Which pumps are sound?")
    body["messages"] += [{"role": "assistant", "content": report} for report in REPORTS[9:10]]
    return body


async def queued(store: Store, dialect: str = "openai-chat") -> tuple[Job, FoldSummaries]:
    messages = read(in_dialect(talk(), dialect), dialect).messages
    fold = content(listed(messages), "fold")
    await store.put(HERE, [fold])
    summaries = FoldSummaries(store, SETTINGS)
    await summaries.ask(HERE, dialect, [fold.ref_id])
    await summaries.ask(HERE.of("another"), dialect, [fold.ref_id])
    [job] = await store.jobs.claim(Claim(kinds=("fold",), limit=9, quotas=QUOTAS))
    return job, summaries


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_sentence_leads_to_the_message_that_bears_it_out(dialect: str) -> None:
    async def work() -> None:
        store = open_memory()
        job, summaries = await queued(store, dialect)
        outcome = await FoldSummariser(store, SETTINGS, [Model("lies")])(job)
        assert outcome.summary is not None
        assert outcome.cost <= job.most_cost
        telling = msgspec.json.decode(outcome.summary.value, type=MessageSummary)
        assert (telling.checked, telling.unsupported, telling.model) == (2, 1, "model")
        [sentence] = telling.sentences
        assert LIE not in sentence.text
        stored = await store.get(HERE, job.ref_id)
        assert stored is not None
        messages = json.loads(stored.data)[sentence.first : sentence.last + 1]
        assert sentence.text in json.dumps(messages)
        assert len(messages) < len(talk()["messages"]) / 3
        assert await summaries.ready(HERE, dialect, [job.ref_id]) == {}
        assert await store.jobs.finish(job, summary=outcome.summary)
        assert await summaries.ready(HERE, dialect, [job.ref_id]) == {job.ref_id: (sentence,)}
        assert await summaries.ready(Scope("bob", "blue"), dialect, [job.ref_id]) == {}

    asyncio.run(work())


def test_what_another_model_or_prompt_would_say_is_another_summary() -> None:
    async def work() -> None:
        store = open_memory()
        job, _ = await queued(store)
        for other in (
            {"summarization_provider": "openai:other"},
            {"summarization_prompt_version": "v2"},
        ):
            changed = FoldSummaries(store, msgspec.structs.replace(SETTINGS, **other))
            await changed.ask(HERE, "openai-chat", [job.ref_id])
        with patch.object(queue, "SUMMARY_TOKENS", 60):
            await FoldSummaries(store, SETTINGS).ask(HERE, "openai-chat", [job.ref_id])
        assert len(await store.jobs.latest(HERE, kind="fold")) == 4

    asyncio.run(work())


def test_a_content_that_is_gone_or_too_short_is_skipped() -> None:
    async def work() -> None:
        store = open_memory()
        job, _ = await queued(store)
        await store.forget(HERE, [job.ref_id])
        handle = FoldSummariser(store, SETTINGS, [Model()])
        assert (await handle(job)).skipped == "the content is gone"
        short = content(b'[{"role":"user","content":"Hi"}]', "fold")
        await store.put(HERE, [short])
        outcome = await handle(msgspec.structs.replace(job, ref_id=short.ref_id))
        assert outcome.skipped == "the messages are too short to be summarised"

    asyncio.run(work())


def test_a_summary_goes_with_the_messages_it_is_of() -> None:
    async def work() -> None:
        store = open_memory()
        job, summaries = await queued(store)
        outcome = await FoldSummariser(store, SETTINGS, [Model()])(job)
        assert isinstance(outcome.summary, Summary)
        assert await store.jobs.finish(job, summary=outcome.summary)
        await store.forget(HERE, [job.ref_id])
        assert await summaries.ready(HERE, "openai-chat", [job.ref_id]) == {}

    asyncio.run(work())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_stored_messages_are_read_as_they_were_sent(dialect: str) -> None:
    messages = read(in_dialect(talk(), dialect), dialect).messages
    again = messages_in(listed(messages), dialect)
    assert [message.raw for message in again] == [message.raw for message in messages]
    assert transcript(again) == transcript(messages)
