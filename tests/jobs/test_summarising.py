"""A content that is opened again is summarised by a model, in the background, within the quotas."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.engine import Holdfast
from holdfast.errors import ModelRateLimitedError, SummarizationError
from holdfast.jobs import Worker, WorkerRules
from holdfast.jobs.protocol import Attempt
from holdfast.jobs.running import handlers, rules_of
from holdfast.jobs.summarising import KIND, OPENINGS, Summariser, job_of, summary_queue
from holdfast.models.protocol import Completion
from holdfast.settings import Settings
from holdfast.store import RefInfo, Scope
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store
from holdfast.store.queue import Claim
from tests.store.harness import Clock, content

HERE = Scope("ann", "blue", "s")
MODEL = Settings(
    store_url="memory:",
    summarization_provider="openai:gpt-5-mini",
    background_jobs=False,  # the worker of a test has a model of the test's own
    forbid_model_calls=True,
)
TEXT = "\n".join(f"The server node-{n} answered in {n} ms and wrote {n} rows." for n in range(200))
LINE = "The server node-7 answered in 7 ms and wrote 7 rows."


class Says:
    """A model that gives the same answer to anything, or fails."""

    name, window = "test:model", 100_000

    def __init__(self, text: str = LINE, error: Exception | None = None) -> None:
        self.text, self.error, self.calls = text, error, 0

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        self.calls += 1
        assert prompt
        assert system is not None
        assert max_tokens
        if self.error is not None:
            raise self.error
        return Completion(self.text, 1000, 20, 0.001, "model")


async def stored(store: Store) -> RefInfo:
    await store.put(HERE, [content(TEXT, tokens=3_000, summary="an extract")])
    info = await store.info(HERE, content(TEXT).ref_id)
    assert info is not None
    return info


async def worked(store: Store, model: Says, **quotas: int) -> list[Attempt]:
    """Run queued jobs, once."""
    attempts: list[Attempt] = []
    settings = Settings(**quotas)  # type: ignore[arg-type]
    quick = Settings(summarization_max_retries=0, **quotas)  # type: ignore[arg-type]
    worker = Worker(
        store.jobs,
        {KIND: Summariser(store, quick, [model])},
        WorkerRules(slots=1, quotas=rules_of(settings, 1).quotas),
    )

    def told(attempt: Attempt) -> None:
        attempts.append(attempt)
        worker.stop()

    worker.told = told
    await asyncio.wait_for(worker.run(), 30.0)
    return attempts


def test_a_content_that_is_opened_again_is_summarised_and_says_so_from_then_on() -> None:
    async def work() -> None:
        async with Holdfast.open(settings=MODEL) as engine:
            cited = await engine.cite(TEXT)
            store = engine.store
            for opening in range(1, OPENINGS + 2):
                await engine.expand_ref(cited.ref_id)
                jobs = await store.jobs.latest(engine.scope, kind=KIND)
                assert len(jobs) == (opening >= OPENINGS)
            assert (jobs[0].ref_id, jobs[0].most_cost) == (cited.ref_id, 120)
            model = Says()
            (attempt,) = await worked(store, model)
            assert (attempt.state, model.calls) == ("done", 1)
            assert attempt.cost > 0
            info = await store.info(engine.scope, cited.ref_id)
            assert info is not None
            assert info.summary == LINE

    asyncio.run(work())


def test_without_a_model_nothing_is_queued() -> None:
    async def work() -> None:
        plain = Settings(store_url="memory:", summarization_providers=["extractive"])
        async with Holdfast.open(settings=plain) as engine:
            cited = await engine.cite(TEXT)
            for _ in range(4):
                await engine.expand_ref(cited.ref_id)
            assert await engine.store.jobs.latest(None) == []
        assert summary_queue(open_memory(), plain) is None
        assert KIND not in handlers(open_memory(), plain)
        assert KIND in handlers(open_memory(), MODEL)

    asyncio.run(work())


@pytest.mark.parametrize("tokens", [0, 499])
def test_a_short_content_is_never_worth_it(tokens: int) -> None:
    async def work() -> None:
        store = open_memory(clock=Clock())
        await store.put(HERE, [content("short", tokens=tokens)])
        summaries = summary_queue(store, MODEL)
        assert summaries is not None
        for _ in range(3):
            opened = await store.get(HERE, content("short").ref_id)
            assert opened is not None
            await summaries.opened(HERE, opened.info)
            await summaries.listed(HERE, opened.info)
        assert await store.jobs.latest(None) == []

    asyncio.run(work())


def test_a_content_that_is_no_longer_there_is_not_queued() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        await store.put(HERE, [content(TEXT, tokens=3_000, ttl_seconds=60.0)])
        fresh = await store.info(HERE, content(TEXT).ref_id)
        clock.now += 61.0
        expired = await store.info(HERE, content(TEXT).ref_id)
        summaries = summary_queue(store, MODEL)
        assert fresh is not None
        assert expired is not None
        assert summaries is not None
        assert expired.state == "stale"
        await summaries.listed(HERE, expired)
        assert await store.jobs.latest(None) == []
        await summaries.listed(HERE, fresh)
        assert len(await store.jobs.latest(None)) == 1

    asyncio.run(work())


def test_a_provider_that_fails_leaves_the_extract_and_is_asked_later() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        info = await stored(store)
        await store.jobs.enqueue(HERE, [job_of(info)])
        busy = ModelRateLimitedError("too many requests", where="test", retry_after=777.0)
        (attempt,) = await worked(store, Says(error=busy), summary_tokens_per_day=1_000)
        (job,) = await store.jobs.latest(HERE)
        assert (attempt.state, job.state) == ("failed", "failed")
        assert job.error.startswith(SummarizationError.__name__)
        assert job.next_attempt_at == clock.now + 777.0
        after = await store.info(HERE, info.ref_id)
        assert after is not None
        assert after.summary == "an extract"

    asyncio.run(work())


def test_what_was_summarised_before_costs_nothing_again() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        info = await stored(store)
        model = Says()
        for cost in (True, False):
            await store.jobs.enqueue(HERE, [job_of(info)])
            (attempt,) = await worked(store, model)
            assert bool(attempt.cost) == cost
            await store.jobs.forget_finished(0.0)
        assert model.calls == 1
        await store.forget(HERE, [info.ref_id])
        await stored(store)
        await store.jobs.enqueue(HERE, [job_of(info)])
        await worked(store, model)
        assert model.calls == 2  # the summary was removed with its content

    asyncio.run(work())


def test_a_content_that_is_gone_is_skipped() -> None:
    async def work() -> None:
        store = open_memory(clock=Clock())
        info = await stored(store)
        await store.jobs.enqueue(HERE, [job_of(info)])
        (job,) = await store.jobs.claim(Claim(kinds=(KIND,)))
        await store.forget(HERE, [info.ref_id])
        outcome = await Summariser(store, Settings(), [Says()])(job)
        assert outcome.skipped == "the content is gone"

    asyncio.run(work())


def test_over_the_quota_the_provider_is_not_asked_before_the_next_day() -> None:
    async def work() -> None:
        clock = Clock()
        store = open_memory(clock=clock)
        info = await stored(store)
        await store.jobs.enqueue(HERE, [job_of(info)])
        quotas = msgspec.structs.replace(rules_of(Settings(), 1).quotas, session=119)
        assert await store.jobs.claim(Claim(kinds=(KIND,), quotas=quotas)) == []
        (job,) = await store.jobs.latest(HERE)
        assert (job.state, job.error) == ("skipped", "quota_exceeded: session")

    asyncio.run(work())


def test_a_look_of_a_person_queues_nothing() -> None:
    async def work() -> None:
        async with Holdfast.open(settings=MODEL) as engine:
            cited = await engine.cite(TEXT)
            silent = engine.with_parts(summary_queue=None)
            for _ in range(OPENINGS):
                await silent.expand_ref(cited.ref_id)
            await engine.expand_ref(cited.ref_id, peek=True)
            assert await engine.store.jobs.latest(engine.scope, kind=KIND) == []

    asyncio.run(work())
