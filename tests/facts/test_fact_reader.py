"""A model reads results for facts in the background; facts need the result's support."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.engine import Holdfast
from holdfast.facts import FactIndexCache, Ledger, fact_jobs
from holdfast.facts.fact_reader import KIND, FactReader
from holdfast.jobs import Worker, WorkerRules
from holdfast.jobs.protocol import Attempt
from holdfast.models.protocol import Completion
from holdfast.settings import Settings
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store

MODEL = Settings(
    store_url="memory:",
    summarization_provider="openai:gpt-5-mini",
    background_jobs=False,  # the worker of a test has a model of the test's own
    forbid_model_calls=True,
)
TEXT = "\n".join(f"The server node-{n} answered in {n} ms and wrote {n} rows." for n in range(200))
SAID = (
    "The server node-7 answered in 7 ms. It wrote 9 rows. The server node-8 answered in 4,711 ms. "
    "The server node-9 wrote 9 rows."
)


class Says:
    """A model that returns the same text for every call."""

    name, window = "test:model", 100_000

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        assert prompt
        assert system
        assert max_tokens
        return Completion(SAID, 1000, 20, 0.001, "model")


async def worked(store: Store) -> Attempt:
    ledger = Ledger(store, Holdfast(store).scope, FactIndexCache(store, None))
    quick = Settings(summarization_max_retries=0)
    attempts: list[Attempt] = []
    reader = FactReader(store, quick, ledger, [Says()])
    worker = Worker(store.jobs, {KIND: reader}, WorkerRules(slots=1))

    def told(attempt: Attempt) -> None:
        attempts.append(attempt)
        worker.stop()

    worker.told = told
    await asyncio.wait_for(worker.run(), 30.0)
    return attempts[0]


def test_a_long_result_is_read_once_and_what_it_bears_out_and_stands_alone_is_kept() -> None:
    async def work() -> None:
        async with Holdfast.open(settings=MODEL) as engine:
            cited = await engine.cite(TEXT, tool="status", session="s")
            await engine.cite(TEXT, tool="status", session="s")
            (job,) = await engine.store.jobs.latest(None, kind=KIND)
            assert (job.ref_id, job.scope.session) == (cited.ref_id, "s")
            assert (await worked(engine.store)).state == "done"
            read = await engine.store.info(engine.scope, cited.ref_id)
            assert read is not None
            assert read.accesses == 0, "a background reading is no opening"
            facts = await engine.facts.latest("s")
            assert sorted(fact.text for fact in facts) == [
                "The server node-7 answered in 7 ms.",
                "The server node-9 wrote 9 rows.",
            ]
            assert {(fact.source_ref, fact.tags) for fact in facts} == {(cited.ref_id, ("status",))}
            assert all(fact.place.startswith("line") for fact in facts)
            await engine.store.forget(engine.scope, [cited.ref_id])
            assert await engine.facts.latest() == []

    asyncio.run(work())


def test_without_a_model_or_a_ledger_nothing_is_queued() -> None:
    async def work() -> None:
        off = msgspec.structs.replace(MODEL, enable_facts_ledger=False)
        for settings in (Settings(store_url="memory:"), off):
            assert fact_jobs(open_memory(), settings) == {}
            async with Holdfast.open(settings=settings) as engine:
                await engine.cite(TEXT)
                assert await engine.store.jobs.latest(None, kind=KIND) == []
        assert KIND in fact_jobs(open_memory(), MODEL)

    asyncio.run(work())
